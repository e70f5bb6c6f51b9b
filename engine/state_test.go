package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"leat/engine"
)

// A state can't be cut: a session that goes back runs its tokens again, and gives the same bits as one that never went
// further.
func TestStateGoesBack(t *testing.T) {
	g := golden{"qwen3next-nano", filepath.Join("testdata", "qwen3next-nano.gguf"), filepath.Join("testdata", "qwen3next-nano")}
	ref := readReference(t, g.base)
	ids := slices.Concat(ref.Tokens, ref.Greedy)
	m := load(t, g.model, exact(setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 16}, Sessions: 2})))
	want := logits(t, m, ids)
	v := ref.Vocab
	for _, c := range []struct {
		name        string
		first, back int // so many tokens run, then all from back on are forgotten
	}{
		{"to the beginning", 40, 0},
		{"to where the last step began", 40, 32},
		{"into the last step", 40, 35},
		{"far back", 50, 5},
		{"nowhere", 30, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			other := slices.Concat(ids[:c.back], slices.Repeat(ids[:1], c.first-c.back)) // what is forgotten is something else
			if _, err := s.Forward(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			if err := s.Truncate(c.back); err != nil {
				t.Fatal(err)
			}
			var got []float32
			for row, err := range s.Logits(t.Context(), ids[c.back:]) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, row...)
			}
			if !slices.Equal(got, want[c.back*v:]) {
				t.Errorf("%d rows after position %d differ from those of a fresh session", len(got)/v, c.back)
			}
		})
	}
}

// A step that is stopped in its midst leaves the state as it was.
func TestStateOfStoppedStep(t *testing.T) {
	base := filepath.Join("testdata", "qwen35moe-nano")
	ref := readReference(t, base)
	ids := slices.Concat(ref.Tokens, ref.Greedy)
	o := exact(setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 16}}))
	whole := load(t, base+".gguf", o)
	want := logits(t, whole, ids)
	o.DeviceBytes, o.HostBytes = leastBudget(t, base+".gguf", o), 1
	for _, reads := range []int{0, 3, 8} { // one layer in, and further
		var disk atomic.Pointer[stuckDisk]
		disk.Store(newStuckDisk(1 << 30))
		m := load(t, base+".gguf", engine.WithFault(o, func(path string, off, n int64) error { return disk.Load().fault(path, off, n) }))
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		const half = 24
		got, err := collect(t.Context(), s, ids[:half])
		if err != nil {
			t.Fatal(err)
		}
		stuck := newStuckDisk(reads)
		disk.Store(stuck)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-stuck.stuck
			cancel()
		}()
		if _, err = collect(ctx, s, ids[half:half+6]); !errors.Is(err, context.Canceled) {
			t.Fatalf("stuck after %d reads: error %v, wanted one of the context", reads, err)
		}
		close(stuck.gate)
		if err := s.Truncate(half); err != nil {
			t.Fatal(err)
		}
		rest, err := collect(t.Context(), s, ids[half:])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(append(got, rest...), want) {
			t.Errorf("stuck after %d reads: logits differ from those of a model left in peace", reads)
		}
		s.Close()
	}
}

func collect(ctx context.Context, s *engine.Session, ids []int32) (all []float32, err error) {
	for row, err := range s.Logits(ctx, ids) {
		if err != nil {
			return nil, err
		}
		all = append(all, row...)
	}
	return all, nil
}
