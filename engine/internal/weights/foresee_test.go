package weights

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// foresee has some experts of a layer come before it is at hand, from RAM and from disk.
func (r *rig) foresee(layer, step int, rng *rand.Rand, b *Batch) {
	r.t.Helper()
	x := r.s.Experts()
	var ids []int32
	far := x.RoomFor(layer)
	for _, id := range rng.Perm(x.p.Count)[:1+rng.IntN(x.p.Count)] {
		switch x.Where(layer, int32(id)) {
		case Near:
			ids = append(ids, int32(id))
		case Far:
			if far--; far >= 0 {
				ids = append(ids, int32(id))
			}
		}
	}
	x.Begin(step, layer)
	r.ok(x.Foresee(r.t.Context(), layer, ids, b))
}

// judge says which experts of a layer are needed of those that were foreseen.
func (r *rig) judge(ids []int32, b *Batch) {
	r.t.Helper()
	x := r.s.Experts()
	pairs := make([]int32, x.p.Count)
	for _, id := range ids {
		pairs[id] = 1
	}
	r.ok(x.Judge(b, pairs))
}

// TestForeseenFails: a read that fails of an expert that nobody then wants harms nobody; who wants it later has it read again.
// Where it is wanted after all, the error is the step's.
func TestForeseenFails(t *testing.T) {
	bad := errors.New("bad sector")
	var broken atomic.Bool
	r := newRig(t, mixture(t), setup{host: 4 << 20, extra: 1 << 20, fault: func(string, int64, int64) error {
		if broken.Load() {
			return bad
		}
		return nil
	}})
	x := r.s.Experts()
	layer, b, seen := x.layersOf()[0], x.NewBatch(), x.NewBatch()
	var far []int32
	for id := range int32(x.p.Count) {
		if x.Where(layer, id) == Far {
			far = append(far, id)
		}
	}
	if len(far) < 2 || x.RoomFor(layer) < 1 {
		t.Fatalf("%d experts are on disk alone, there is room for %d", len(far), x.RoomFor(layer))
	}
	broke, other := far[:1], far[1:2]
	for _, wanted := range []bool{false, true} {
		broken.Store(true)
		x.Begin(1, layer)
		r.ok(x.Foresee(t.Context(), layer, broke, seen))
		for i := range x.flying {
			for !x.flying[i].request.Ready() {
				time.Sleep(time.Millisecond)
			}
		}
		broken.Store(false)
		if wanted {
			_, err := x.Take(t.Context(), layer, broke, b)
			r.ok(err)
			r.judge(broke, seen)
			if err := x.Arrive(t.Context(), b); !errors.Is(err, bad) {
				t.Errorf("wanted after all: %v", err)
			}
			r.ok(r.s.Abort(r.value))
			continue
		}
		r.judge(other, seen)
		_, err := x.Take(t.Context(), layer, other, b)
		r.ok(err)
		r.run(b, true)
		if _, err := x.Release(b, r.value, 1); err != nil {
			t.Fatal(err)
		}
		if x.Where(layer, broke[0]) != Far {
			t.Error("an expert whose read failed counts as one that is there")
		}
	}
	_, err := x.Take(t.Context(), layer, broke, b)
	r.ok(err)
	r.run(b, true)
}

// TestForeseenShrinks: a slot goes to which an expert is on its way that nobody wants.
func TestForeseenShrinks(t *testing.T) {
	r := newRig(t, mixture(t), setup{host: 4 << 20, extra: 3 << 20, blocks: 200 << 10})
	x := r.s.Experts()
	p, err := r.o.Plan.Shrink(r.o.Plan.DeviceBytes - 1<<20)
	r.ok(err)
	class, layer := 0, -1 // of those that lose slots
	for _, l := range x.layersOf() {
		if c := x.layers[l].class; p.Experts.Classes[c].Slots() < len(x.classes[c].slots) {
			class, layer = c, l
		}
	}
	b, seen, last := x.NewBatch(), x.NewBatch(), len(x.classes[class].slots)-1
	fill := 0
	for _, l := range x.layersOf() {
		if x.layers[l].class != class {
			continue
		}
		x.Begin(1, l)
		for id := range int32(x.p.Count) {
			if fill == last { // the last slot is free
				break
			}
			n, err := x.Take(t.Context(), l, []int32{id}, b)
			r.ok(err)
			r.ok(x.Arrive(t.Context(), b))
			if _, err := x.Release(b, r.value, 1); err != nil {
				t.Fatal(err)
			}
			fill += n
		}
	}
	far := int32(-1)
	for id := range int32(x.p.Count) {
		if x.Where(layer, id) == Far {
			far = id
		}
	}
	x.Begin(1, layer)
	r.ok(x.Foresee(t.Context(), layer, []int32{far}, seen))
	if len(x.flying) == 0 || x.flying[0].t.Slot != last {
		t.Fatalf("what is under way: %+v, wanted the expert on its way to slot %d", x.flying, last)
	}
	r.judge(nil, seen)
	r.ok(r.s.Replan(t.Context(), p))
	if x.Where(layer, far) != Far {
		t.Error("the expert counts as one that is there")
	}
	x.Begin(2, layer)
	_, err = x.Take(t.Context(), layer, []int32{far}, b)
	r.ok(err)
	r.run(b, true)
}
