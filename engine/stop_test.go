package engine_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"

	"leat/engine"
	"leat/tools/testdata"
)

// stuckDisk is a disk that answers no read after so many, until it is freed.
type stuckDisk struct {
	mu    sync.Mutex
	left  int
	stuck chan struct{} // closed by the first read that hangs
	gate  chan struct{}
	once  sync.Once
}

func newStuckDisk(after int) *stuckDisk {
	return &stuckDisk{left: after, stuck: make(chan struct{}), gate: make(chan struct{})}
}

func (d *stuckDisk) fault(string, int64, int64) error {
	d.mu.Lock()
	d.left--
	hangs := d.left < 0
	d.mu.Unlock()
	if hangs {
		d.once.Do(func() { close(d.stuck) })
		<-d.gate
	}
	return nil
}

// TestStopMidToken: a generation whose disk hangs ends with its context all the same, and
// goes on later with the very logits that one finds which was never stopped.
func TestStopMidToken(t *testing.T) {
	moments := []int{0, 1, 4, 12, 30, 70}
	if testing.Short() {
		moments = []int{0, 5, 40}
	}
	whole := load(t, testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", engine.Options{ContextLength: 64})
	prompt := whole.Encode("Once upon a time there was a dog", true)
	all := logits(t, whole, prompt)
	want := all[len(all)-whole.Hyper().VocabSize:]
	base := runtime.NumGoroutine()
	for _, host := range []int64{1, 3 << 20} {
		for _, n := range moments {
			disk := newStuckDisk(n)
			m := demoStreamed(t, host, func(o engine.Options) engine.Options {
				o.Chunk = 5
				return engine.WithFault(o, disk.fault)
			})
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-disk.stuck
				cancel()
			}()
			got := 0
			for _, err = range s.Generate(ctx, prompt, engine.Params{MaxTokens: 6, IgnoreEOG: true}) {
				if err == nil {
					got++
				}
			}
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("stuck after %d reads: the generation ended with %v", n, err)
			}
			if err == nil && host == 1 {
				t.Errorf("stuck after %d reads: the generation did not notice", n)
			}
			if s.Len() != len(prompt)+got {
				t.Errorf("stuck after %d reads: the session holds %d tokens, wanted the prompt's %d and %d", n, s.Len(), len(prompt), got)
			}
			close(disk.gate)
			if err := s.Truncate(len(prompt)); err != nil {
				t.Fatal(err)
			}
			rest, err := s.Reuse(prompt)
			if err != nil {
				t.Fatal(err)
			}
			logits, err := s.Forward(t.Context(), rest)
			if err != nil {
				t.Fatalf("stuck after %d reads: then %v", n, err)
			}
			for i := range want {
				if math.Float32bits(logits[i]) != math.Float32bits(want[i]) {
					t.Fatalf("stuck after %d reads: logit %d is %g, wanted the bits of %g", n, i, logits[i], want[i])
				}
			}
			s.Close()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	settled(t, base)
}

// TestCloseMidToken: Close ends a step that waits for a disk; only the read itself can
// hold it up.
func TestCloseMidToken(t *testing.T) {
	base := runtime.NumGoroutine()
	disk := newStuckDisk(30)
	m := demoStreamed(t, 1, func(o engine.Options) engine.Options { return engine.WithFault(o, disk.fault) })
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		var last error
		for _, err := range s.Generate(t.Context(), m.Encode("Once upon a time", true), engine.Params{MaxTokens: 40, IgnoreEOG: true}) {
			last = err
		}
		ended <- last
	}()
	<-disk.stuck
	closed := make(chan error)
	go func() { closed <- m.Close() }()
	if err := <-ended; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the generation ended with %v", err)
	}
	close(disk.gate)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	settled(t, base)
}
