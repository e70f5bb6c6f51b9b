package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/tools/await"
	"leat/tools/testdata"
	"leat/vk"
	"leat/vk/file"
)

// demoStreamed loads the demo model within the least VRAM, all of it streamed from disk
// or from host memory.
func demoStreamed(t *testing.T, host int64, change func(engine.Options) engine.Options) *engine.Model {
	t.Helper()
	path := testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf"
	o := engine.Options{ContextLength: 64, HostBytes: 1, DeviceBytes: 1}
	_, err := engine.Load(t.Context(), path, o)
	o.DeviceBytes, o.HostBytes = budgetNeed(t, err), host
	return load(t, path, change(o))
}

// failingAfter is a disk that fails after so many reads.
func failingAfter(reads int64, err error) file.Fault {
	var n atomic.Int64
	return func(string, int64, int64) error {
		if n.Add(1) > reads {
			return err
		}
		return nil
	}
}

// TestReadFails: a read that fails in the middle of a token ends the step with the
// disk's own error, and the model with it; closing leaves nothing behind.
func TestReadFails(t *testing.T) {
	bad := errors.New("bad sector")
	base := runtime.NumGoroutine()
	for _, after := range []int64{0, 1, 17, 60, 150} {
		t.Run("", func(t *testing.T) {
			m := demoStreamed(t, 1, func(o engine.Options) engine.Options { return engine.WithFault(o, failingAfter(after, bad)) })
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var last error
			for _, err := range s.Generate(t.Context(), m.Encode("Once upon a time", true), engine.Params{MaxTokens: 40, IgnoreEOG: true}) {
				last = err
			}
			var e *file.Error
			if !errors.Is(last, bad) || !errors.As(last, &e) {
				t.Errorf("the generation ended with %v", last)
			}
			if _, err := s.Forward(t.Context(), nil); err == nil {
				t.Error("a step ran after the disk had failed")
			}
			s.Close()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	await.Goroutines(t, base)
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
	m := demoStreamed(t, k%2<<26, func(o engine.Options) engine.Options {
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
	if m, err := engine.Load(ctx, path, engine.Options{ContextLength: 64}); !errors.Is(err, context.Canceled) {
		if err == nil {
			m.Close()
		}
		if errors.Is(err, engine.ErrNoDevice) {
			t.Skip(err)
		}
		t.Errorf("Load ended with %v", err)
	}
	m := load(t, path, engine.Options{ContextLength: 64})
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
