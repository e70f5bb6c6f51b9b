package weights

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk"
	"leat/vk/xfer"
)

// NewBatch makes an empty batch, which the next step that is stopped empties again.
func (x *Experts) NewBatch() *Batch {
	b := &Batch{taken: make([]expertcache.Taken, 0, x.p.Count)}
	x.batches = append(x.batches, b)
	return b
}

// Begin says that a layer runs, in a step counted from 1.
func (x *Experts) Begin(step, layer int) {
	x.step = step
	l := &x.layers[layer]
	x.classes[l.class].cache.Begin(int64(step), l.index)
}

// Split appends those of a layer's ids that are in VRAM, or on their way, to hits, and the others to misses.
func (x *Experts) Split(layer int, ids, hits, misses []int32) (h, m []int32) {
	l := &x.layers[layer]
	for _, id := range ids {
		if x.classes[l.class].cache.Has(l.index, id) {
			hits = append(hits, id)
		} else {
			misses = append(misses, id)
		}
	}
	return hits, misses
}

// Wave is how many missing experts of a layer should be taken together: so that others come while these are computed.
func (x *Experts) Wave(layer int) int {
	p := &x.p.Classes[x.layers[layer].class]
	return max(1, min(max(x.p.Used, int(plan.WaveBytes/p.SlotBytes)), len(x.classes[x.layers[layer].class].slots)/2))
}

// Take takes the first of ids that there are slots for into b, which must be empty, and has the bytes of those that are
// not there brought. It returns how many it took: none, where all slots are taken. Those that are there it puts first in ids.
func (x *Experts) Take(ctx context.Context, layer int, ids []int32, b *Batch) (n int, err error) {
	if len(b.taken) > 0 {
		return 0, fmt.Errorf("take experts of layer %d: the batch still has %d of layer %d", layer, len(b.taken), b.layer)
	}
	l := &x.layers[layer]
	c := &x.classes[l.class]
	b.layer = layer
	before := c.cache.Stats()
	x.hitsFirst(l, ids)
	b.taken = c.cache.Take(l.index, ids, b.taken)
	x.count.took(c.cache.Stats(), before)
	x.listed = x.listed[:0]
	x.out.clear()
	var now uint64
	for i := range b.taken {
		t := &b.taken[i]
		if t.Hit {
			x.count.vramBytes.Add(x.of(layer, t).unit.Bytes)
		}
		if !t.Hit {
			if now == 0 {
				if now, err = x.s.o.Compute.Value(); err != nil {
					return 0, err
				}
			}
			here, err := x.miss(ctx, b.layer, *t, now)
			if err != nil {
				return 0, err
			}
			if here {
				x.listed = append(x.listed, i)
			}
		}
	}
	return len(b.taken), x.uploadListed(b)
}

// hitsFirst moves those of a layer's ids to the front that need no slot, and leaves the order else: as the cache takes them.
func (x *Experts) hitsFirst(l *cachedLayer, ids []int32) {
	n := 0
	for i, id := range ids {
		if x.classes[l.class].cache.Has(l.index, id) {
			copy(ids[n+1:i+1], ids[n:i])
			ids[n] = id
			n++
		}
	}
}

// of is the expert's place of rest.
func (x *Experts) of(layer int, t *expertcache.Taken) *resting {
	return &x.resting[layer*x.p.Count+int(t.Expert)-x.layers[layer].index*x.p.Count]
}

// slotOf is where it was taken to.
func (x *Experts) slotOf(layer int, t *expertcache.Taken) *slot {
	return &x.classes[x.layers[layer].class].slots[t.Slot]
}

// Arrive waits until the uploads of all that b took are submitted.
func (x *Experts) Arrive(ctx context.Context, b *Batch) error {
	for i := range b.taken {
		t := &b.taken[i]
		for !x.slotOf(b.layer, t).has(t) {
			if len(x.flying) == 0 {
				return x.wrong(b.layer, t)
			}
			if err := x.land(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Here reports whether [Experts.Arrive] would not have to wait.
func (x *Experts) Here(b *Batch) bool {
	for i := range b.taken {
		if !x.slotOf(b.layer, &b.taken[i]).has(&b.taken[i]) {
			return false
		}
	}
	return true
}

// Waits appends what the step's queue must wait for before it reads what b took, less what it has waited for. What is
// returned must be submitted.
func (x *Experts) Waits(b *Batch, points []vk.Point) []vk.Point {
	var t xfer.Ticket
	for i := range b.taken {
		s := x.slotOf(b.layer, &b.taken[i])
		t, s.unread = t.With(s.ticket), false
	}
	if x.waited.Covers(t) {
		return points
	}
	x.waited = x.waited.With(t)
	return x.up.Points(t, points)
}

// SlotError says that a slot does not hold what was taken there.
type SlotError struct {
	Layer, Expert, Slot        int
	Found, Generation          int // expert of the class, and how many have been in the slot
	WantExpert, WantGeneration int
}

// Error names both.
func (e *SlotError) Error() string {
	return fmt.Sprintf("layer %d expert %d: slot %d holds expert %d, the slot's number %d, wanted %d, number %d", e.Layer, e.Expert, e.Slot, e.Found, e.Generation, e.WantExpert, e.WantGeneration)
}

func (s *slot) has(t *expertcache.Taken) bool {
	return s.holds.Generation == t.Generation && s.holds.Expert == t.Expert
}

func (x *Experts) wrong(layer int, t *expertcache.Taken) error {
	s := x.slotOf(layer, t)
	return &SlotError{layer, int(t.Expert) - x.layers[layer].index*x.p.Count, t.Slot, int(s.holds.Expert), int(s.holds.Generation), int(t.Expert), int(t.Generation)}
}

// At says where the i'th that b took lies, which one of its layer's it is, and what it is made of.
func (x *Experts) At(b *Batch, i int) (address uint64, id int, unit *pack.Unit, err error) {
	t := &b.taken[i]
	s := x.slotOf(b.layer, t)
	if !s.has(t) {
		return 0, 0, nil, x.wrong(b.layer, t)
	}
	r := x.of(b.layer, t)
	return s.span.Address(), r.unit.Expert, r.unit, nil
}

// Release empties b: what it took may go once the compute timeline has reached value. Of those that came for it no more
// than keep stay; the others' slots are the next ones to be taken. It returns how many stay.
func (x *Experts) Release(b *Batch, value uint64, keep int) (kept int, err error) {
	c := &x.classes[x.layers[b.layer].class]
	for i := range b.taken {
		t := &b.taken[i]
		s := &c.slots[t.Slot]
		if !s.has(t) {
			return kept, x.wrong(b.layer, t)
		}
		s.reads = max(s.reads, value)
		c.cache.Release(*t)
		switch {
		case t.Hit:
		case kept < keep:
			kept++
		default:
			c.cache.Drop(*t)
		}
	}
	b.taken = b.taken[:0]
	return kept, nil
}

// Share is how many slots a layer has if all have as many.
func (x *Experts) Share(layer int) int {
	c := x.layers[layer].class
	return len(x.classes[c].slots) / len(x.p.Classes[c].Layers)
}

// Present is how many of a layer's experts are in VRAM, or on their way.
func (x *Experts) Present(layer int) (n int) {
	l := &x.layers[layer]
	for id := range int32(x.p.Count) {
		if x.classes[l.class].cache.Has(l.index, id) {
			n++
		}
	}
	return n
}

// ID is which of its layer's experts the i'th is that b took.
func (x *Experts) ID(b *Batch, i int) int {
	return int(b.taken[i].Expert) - x.layers[b.layer].index*x.p.Count
}
