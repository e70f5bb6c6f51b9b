package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/await"
	"leat/tools/testdata"
	"leat/vk"
	"leat/vk/file"
)

// demoStreamed loads the demo model within the least VRAM, all of it streamed from disk
// or from host memory.
func demoStreamed(t *testing.T, host int64, change func(engine.Setup) engine.Setup) *engine.Model {
	t.Helper()
	path := testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf"
	o := setup(engine.Options{ContextLength: 64, HostBytes: 1, DeviceBytes: 1})
	_, err := engine.LoadSetup(t.Context(), path, o)
	o.DeviceBytes, o.HostBytes = budgetNeed(t, err), host
	return load(t, path, change(o))
}

// failingDisk fails after so many reads, until it mends.
type failingDisk struct {
	after int64
	err   error
	n     atomic.Int64
	mends atomic.Bool
}

func newFailingDisk(after int64, err error) *failingDisk { return &failingDisk{after: after, err: err} }

func (d *failingDisk) fault(string, int64, int64) error {
	if d.n.Add(1) > d.after && !d.mends.Load() {
		return d.err
	}
	return nil
}

// TestReadFails: a read that fails in the middle of a token ends the step with the
// disk's own error. The model lives: while the disk fails each step says so, and once it works again the session goes on with the bits that
// one finds whose disk never failed. Closing leaves nothing behind.
func TestReadFails(t *testing.T) {
	bad := errors.New("bad sector")
	whole := load(t, testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", setup(engine.Options{ContextLength: 64}))
	prompt := whole.Encode("Once upon a time", true)
	all := logits(t, whole, prompt)
	want := all[len(all)-engine.DetailsOf(whole).Hyper.VocabSize:]
	base := runtime.NumGoroutine()
	for _, host := range []int64{1, 3 << 20} {
		for _, after := range []int64{0, 17, 150} {
			disk := newFailingDisk(after, bad)
			m := demoStreamed(t, host, func(o engine.Setup) engine.Setup {
				o.Tuning.Chunk = 5
				return engine.WithFault(o, disk.fault)
			})
			failsAndGoesOn(t, m, disk, prompt, want)
		}
	}
	await.Goroutines(t, base)
}

// failsAndGoesOn generates until the disk fails, and then demands the logits after the prompt.
func failsAndGoesOn(t *testing.T, m *engine.Model, disk *failingDisk, prompt []token.ID, want []float32) {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var e *file.Error
	for _, last := range s.Generate(t.Context(), prompt, engine.Params{MaxTokens: 40, IgnoreEOG: true}) {
		err = last
	}
	if err != nil && (!errors.Is(err, disk.err) || !errors.As(err, &e)) || err == nil && engine.DetailsOf(m).Plan.DiskBytes > 0 {
		t.Fatalf("after %d reads: the generation ended with %v", disk.after, err)
	}
	if err != nil {
		if _, err := s.Forward(t.Context(), prompt[:1]); !errors.Is(err, disk.err) {
			t.Errorf("after %d reads: while the disk fails a step ended with %v", disk.after, err)
		}
	}
	disk.mends.Store(true)
	if err := s.Truncate(0); err != nil {
		t.Fatal(err)
	}
	got, err := s.Forward(t.Context(), prompt)
	if err != nil {
		t.Fatalf("after %d reads: once the disk works again: %v", disk.after, err)
	}
	sameBits(t, fmt.Sprintf("after %d reads that failed", disk.after), got, want)
	s.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// moment is a place in a model's life, counted in calls of Vulkan.
type moment struct {
	calls atomic.Int64
	at    int64         // the call at which come is closed; 0: none
	come  chan struct{} // closed
}

func (m *moment) fault(string) vk.Result {
	if m.calls.Add(1) == m.at {
		close(m.come)
	}
	return 0
}

// TestCloseAnyMoment: a model may be closed, and a generation canceled, at any moment
// without a hang or a goroutine left.
func TestCloseAnyMoment(t *testing.T) {
	base := runtime.NumGoroutine()
	rounds := int64(12)
	if testing.Short() {
		rounds = 6
	}
	clean := &moment{}
	closeAt(t, 0, clean, 0)
	rng := rand.New(rand.NewPCG(5, 6))
	for k := range rounds {
		calls := clean.calls.Load()
		closeAt(t, k, &moment{at: 1 + calls*k/rounds + rng.Int64N(calls/rounds), come: make(chan struct{})}, calls)
	}
	await.Goroutines(t, base)
}

// closeAt lives through round k: something happens to a generation at a moment, which a short life may not come to.
func closeAt(t *testing.T, k int64, at *moment, calls int64) {
	t.Helper()
	m := demoStreamed(t, k%2<<26, func(o engine.Setup) engine.Setup {
		return engine.WithDeviceFault(engine.WithLanes(o, int(k%3)), at.fault)
	})
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var last error
		for _, err := range s.Generate(ctx, m.Encode("Once upon a time", true), engine.Params{MaxTokens: 6, IgnoreEOG: true}) {
			last = err
		}
		done <- last
	}()
	ended := false
	select {
	case <-at.come:
	case err = <-done:
		ended = true
	}
	if k%4 == 3 { // closed beside a running generation, which then ends with an error
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if !ended {
		err = await.Receive(t, "the generation's end", done)
	}
	if err != nil && k%4 != 3 && !errors.Is(err, context.Canceled) {
		t.Errorf("round %d, call %d of %d: the generation ended with %v", k, at.at, calls, err)
	}
	if k%4 == 0 { // the session goes on after a cancel
		if _, err := s.Forward(t.Context(), m.Encode(" the", false)); err != nil {
			t.Errorf("round %d: after the cancel: %v", k, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestLoadCanceled: a canceled Load frees everything, and Loaded ends with its context.
func TestLoadCanceled(t *testing.T) {
	base := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf"
	if m, err := engine.LoadSetup(ctx, path, setup(engine.Options{ContextLength: 64})); !errors.Is(err, context.Canceled) {
		if err == nil {
			m.Close()
		}
		if errors.Is(err, engine.ErrNoDevice) {
			t.Skip(err)
		}
		t.Errorf("Load ended with %v", err)
	}
	m := load(t, path, setup(engine.Options{ContextLength: 64}))
	if err := m.Loaded(t.Context()); err != nil {
		t.Error(err)
	}
	if err := m.Loaded(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Loaded ended with %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	await.Goroutines(t, base)
}
