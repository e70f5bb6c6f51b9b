package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/await"
	"leat/tools/testdata"
	"leat/vk/mem"
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

// untilStuck generates some tokens under a context that ends when the disk hangs: how many came, and what ended them.
func untilStuck(t *testing.T, s *engine.Session, disk *stuckDisk, prompt []token.ID) (got int, err error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-disk.stuck
		cancel()
	}()
	for _, err = range s.Generate(ctx, prompt, engine.Params{MaxTokens: 6, IgnoreEOG: true}) {
		if err == nil {
			got++
		}
	}
	return got, err
}

// TestStopMidToken: a generation whose disk hangs ends with its context all the same, and
// goes on later with the very logits that one finds which was never stopped.
func TestStopMidToken(t *testing.T) {
	moments := []int{0, 1, 4, 12, 30, 70}
	if testing.Short() {
		moments = []int{0, 5, 40}
	}
	whole := load(t, testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", setup(engine.Options{ContextLength: 64}))
	prompt := whole.Encode("Once upon a time there was a dog", true)
	all := logits(t, whole, prompt)
	want := all[len(all)-engine.DetailsOf(whole).Hyper.VocabSize:]
	base := runtime.NumGoroutine()
	for _, host := range []int64{1, 3 << 20} {
		for i, n := range moments {
			if !oneIn(3, i) {
				continue
			}
			disk := newStuckDisk(n)
			m := demoStreamed(t, host, func(o engine.Setup) engine.Setup {
				o.Tuning.Chunk = 5
				return engine.WithFault(o, disk.fault)
			})
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			got, err := untilStuck(t, s, disk, prompt)
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
	await.Goroutines(t, base)
}

// looked is a context that ends when it has been looked at so many times.
type looked struct {
	context.Context
	left atomic.Int64
	end  func()
}

func (l *looked) Err() error {
	if l.left.Add(-1) == 0 {
		l.end()
	}
	return l.Context.Err()
}

// TestStopAtEachLook: wherever in a step its context ends, the step was merely stopped: the
// model lives, and the session finds the same bits after it.
func TestStopAtEachLook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := demoStreamed(t, 1, func(o engine.Setup) engine.Setup { return o })
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	prompt := m.Encode("Once upon a time", true)
	want, err := s.Forward(ctx, prompt)
	if err != nil {
		t.Fatal(err)
	}
	want = slices.Clone(want)
	forward := func() ([]float32, error) {
		if err := s.Truncate(0); err != nil {
			t.Fatal(err)
		}
		return s.Forward(ctx, prompt)
	}
	looks := int64(1)
	for stopped := true; stopped; looks += 1 + looks/16 {
		at, end := context.WithCancel(ctx)
		l := &looked{Context: at, end: func() { end(); go m.Wake() }}
		l.left.Store(looks)
		s.LookAt(ctx, l)
		_, err := forward()
		if stopped = err != nil; stopped && !errors.Is(err, context.Canceled) {
			t.Fatalf("look %d: ended with %v", looks, err)
		}
		s.LookAt(t.Context(), t.Context()) // forget the last
		got, err := forward()
		if err != nil {
			t.Fatalf("look %d: after it %v", looks, err)
		}
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Fatalf("look %d: after it the logits are others", looks)
		}
		end()
	}
	if looks < 8 {
		t.Errorf("a step looks at its context only %d times", looks)
	}
}

// TestStopThenShrink: a step is stopped, VRAM is taken, and the session goes on, again and
// again, with the bits that a model left in peace finds; with uploads and in place.
func TestStopThenShrink(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	base := setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 5, Discrete: true}})
	whole := load(t, path, base)
	prompt := whole.Encode("Once upon a time there was a dog", true)
	all := logits(t, whole, prompt)
	want := all[len(all)-engine.DetailsOf(whole).Hyper.VocabSize:]
	goroutines := runtime.NumGoroutine()
	for _, kind := range []mem.Shared{mem.NotShared, mem.Imported} {
		for _, after := range []int{3, 40} {
			t.Run(fmt.Sprintf("%v, %d reads", kind, after), func(t *testing.T) {
				var disk atomic.Pointer[stuckDisk]
				disk.Store(newStuckDisk(1 << 30))
				var take atomic.Bool
				o := engine.WithShared(base, kind)
				if kind == mem.NotShared {
					o.HostBytes = 1 // in place it would be a part of the budget
				}
				least, most := leastBudget(t, path, o), engine.DetailsOf(whole).Plan.DeviceBytes
				o.DeviceBytes = least + (most-least)*2/3
				o = engine.WithFault(o, func(at string, off, n int64) error { return disk.Load().fault(at, off, n) })
				m := load(t, path, engine.WithHeadroom(o, func() int64 {
					if take.CompareAndSwap(true, false) {
						return -(most - least) / 5
					}
					return 1 << 30
				}, 128<<10))
				if engine.DetailsOf(m).Plan.InPlace != (kind != mem.NotShared) {
					t.Fatal("the plan is of another kind")
				}
				s, err := m.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for round := range 3 {
					hanging := newStuckDisk(after)
					disk.Store(hanging)
					ctx, cancel := context.WithCancel(t.Context())
					go func() {
						<-hanging.stuck
						cancel()
					}()
					for err == nil { // until the disk hangs
						if err = s.Truncate(0); err == nil {
							_, err = s.Forward(ctx, prompt)
						}
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("round %d: stopped with %v", round, err)
					}
					close(hanging.gate)
					take.Store(true)
					if err := s.Truncate(0); err != nil {
						t.Fatal(err)
					}
					var got []float32
					if got, err = s.Forward(t.Context(), prompt); err != nil {
						t.Fatalf("round %d: after that %v", round, err)
					}
					for i := range want {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("round %d: logit %d is %g, wanted the bits of %g", round, i, got[i], want[i])
						}
					}
				}
				if n := len(m.Stats().Shrinks); n != 3 {
					t.Errorf("VRAM was given back %d times, wanted 3", n)
				}
				s.Close()
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	await.Goroutines(t, goroutines)
}

// TestContexts: a session's steps end with the context that each is given, and none with
// another's; once the model is closed they say so.
func TestContexts(t *testing.T) {
	m := load(t, filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf"), setup(engine.Options{ContextLength: 64}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	first, cancel := context.WithCancel(t.Context())
	other, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	forward := func(ctx context.Context) error {
		_, err := s.Forward(ctx, []token.ID{1})
		return err
	}
	for _, ctx := range []context.Context{first, first, other, context.Background(), first} {
		if err := forward(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := forward(first); !errors.Is(err, context.Canceled) {
		t.Errorf("under a canceled context: %v", err)
	}
	if err := forward(other); err != nil {
		t.Error(err)
	}
	stop(errors.New("enough"))
	if err := forward(other); !errors.Is(err, context.Canceled) {
		t.Errorf("under a canceled context with a cause: %v", err)
	}
	if err := forward(context.Background()); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := forward(context.Background()); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("of a closed model: %v", err)
	}
}

// TestCloseMidToken: Close ends a step that waits for a disk; only the read itself can
// hold it up.
func TestCloseMidToken(t *testing.T) {
	base := runtime.NumGoroutine()
	disk := newStuckDisk(30)
	m := demoStreamed(t, 1, func(o engine.Setup) engine.Setup { return engine.WithFault(o, disk.fault) })
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
	await.Goroutines(t, base)
}
