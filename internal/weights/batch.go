package weights

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/expertcache"
	"leat/vk"
	"leat/vk/xfer"
)

// Batch is a set of experts of one layer with their slots. The slots cannot be overwritten until the batch is released.
type Batch struct {
	x     *Experts            // the experts whose slots the batch takes
	layer int                 // index, in the model, of the layer whose experts the batch has
	taken []expertcache.Taken // the experts taken, with their slots: the cache evicts none of them
}

// NewBatch makes an empty batch, to be used again and again. [Store.Abort] empties all batches.
func (x *Experts) NewBatch() *Batch {
	b := &Batch{x: x, taken: make([]expertcache.Taken, 0, x.p.Count)}
	x.batches = append(x.batches, b)
	return b
}

// Len is how many experts the batch has taken.
func (b *Batch) Len() int { return len(b.taken) }

// Take takes experts of a layer into an empty batch, and starts to fetch those that have no slot yet, for which others may be evicted. It reorders
// ids so that the experts with a slot come first, takes from the front as many as there are slots for, and returns how many: 0 if other batches
// have taken all slots. Uploads from host copies are submitted, reads from disk only started: see [Batch.SubmitUploads]. It counts hits and misses.
func (b *Batch) Take(ctx context.Context, layer int, ids []int32) (n int, err error) {
	if len(b.taken) > 0 {
		return 0, fmt.Errorf("take experts of layer %d: the batch still has %d of layer %d", layer, len(b.taken), b.layer)
	}
	x, l := b.x, &b.x.layers[layer]
	cache := x.classes[l.class].cache
	b.layer = layer
	before := cache.Stats()
	x.moveHitsFirst(layer, ids)
	b.taken = cache.Take(l.index, ids, b.taken)
	x.Counters.took(cache.Stats(), before)
	x.fromHost.clear() // copies of a batch that failed
	for i := range b.taken {
		if b.taken[i].Hit {
			x.Counters.vramBytes.Add(b.source(i).unit.Bytes)
		} else if err := x.fetch(ctx, b.source(i), b.slot(i), b.taken[i]); err != nil {
			return 0, err
		}
	}
	return len(b.taken), x.fromHost.submit(x.fetcher.life)
}

// moveHitsFirst moves the experts that have a slot to the front of ids and keeps the order otherwise. The cache takes experts in that order, so the
// first n of ids are the n experts that [Batch.Take] takes.
func (x *Experts) moveHitsFirst(layer int, ids []int32) {
	n := 0
	for i, id := range ids {
		if x.has(layer, id) {
			copy(ids[n+1:i+1], ids[n:i])
			ids[n] = id
			n++
		}
	}
}

// ID is the index in the layer of the i'th expert taken.
func (b *Batch) ID(i int) int { return int(b.taken[i].Expert) - b.x.layers[b.layer].index*b.x.p.Count }

// source is where the bytes of the i'th expert taken come from.
func (b *Batch) source(i int) *source { return &b.x.sources.list[b.layer*b.x.p.Count+b.ID(i)] }

// slot is the slot of the i'th expert taken.
func (b *Batch) slot(i int) *slot {
	return &b.x.classes[b.x.layers[b.layer].class].slots[b.taken[i].Slot]
}

// UploadsSubmitted reports whether the uploads of all experts of the batch are submitted: [Batch.SubmitUploads] would not wait.
func (b *Batch) UploadsSubmitted() bool {
	for i := range b.taken {
		if !b.slot(i).holds(&b.taken[i]) {
			return false
		}
	}
	return true
}

// SubmitUploads waits until the experts of the batch are read, and submits their uploads as the reads end. It first submits uploads of older reads.
// It does not wait for the uploads to end: see [Batch.Waits].
func (b *Batch) SubmitUploads(ctx context.Context) error {
	for i := range b.taken {
		for !b.slot(i).holds(&b.taken[i]) {
			if len(b.x.reads) == 0 {
				return b.wrongSlot(i)
			}
			if err := b.x.finishReads(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waits appends to points the points that the step's queue must wait for before it reads the batch's experts: none if the queue has waited for their
// uploads before. The caller must submit work that waits for all of them, because Waits does not give them again.
func (b *Batch) Waits(points []vk.Point) []vk.Point {
	var t xfer.Ticket
	for i := range b.taken {
		p := &b.slot(i).place
		t, p.awaited = t.With(p.ticket), true
	}
	return b.x.fetcher.waits(t, points)
}

// At gives the address in VRAM of the i'th expert taken, its index in the layer, and its tensors. It does not wait, and fails with a [*SlotError] if the
// slot does not hold the expert, as its upload is not submitted or the slot was given to another.
func (b *Batch) At(i int) (address uint64, id int, unit *pack.Unit, err error) {
	s := b.slot(i)
	if !s.holds(&b.taken[i]) {
		return 0, 0, nil, b.wrongSlot(i)
	}
	return s.place.Address(), b.ID(i), b.source(i).unit, nil
}

// Release empties the batch: its slots may be overwritten once the compute timeline has reached value. Of the experts that were fetched for it, at most
// keep stay in the cache; the others are evicted. It returns how many of them stay.
func (b *Batch) Release(value uint64, keep int) (kept int, err error) {
	cache := b.x.classes[b.x.layers[b.layer].class].cache
	for i := range b.taken {
		t, s := &b.taken[i], b.slot(i)
		if !s.holds(t) {
			return kept, b.wrongSlot(i)
		}
		s.place.After = max(s.place.After, value)
		cache.Release(*t)
		switch {
		case t.Hit:
		case kept < keep:
			kept++
		default:
			cache.Drop(*t)
		}
	}
	b.taken = b.taken[:0]
	return kept, nil
}

// SlotError says that a slot does not hold the expert that a batch took: a mistake in this program. Found and WantExpert number the experts of all
// layers of the slot's class; a generation says how many experts the slot has had.
type SlotError struct {
	Layer, Expert, Slot        int // layer of the model, expert of the layer, and slot of the class
	Found, Generation          int // expert in the slot, and its generation; generation 0: no expert's bytes are in the slot
	WantExpert, WantGeneration int // expert that the batch took, and its generation
}

// Error names the expert that was found and the one that was wanted.
func (e *SlotError) Error() string {
	return fmt.Sprintf("layer %d expert %d: slot %d holds expert %d, the slot's number %d, wanted %d, number %d", e.Layer, e.Expert, e.Slot, e.Found, e.Generation, e.WantExpert, e.WantGeneration)
}

// wrongSlot makes the error that the i'th expert taken is not in its slot.
func (b *Batch) wrongSlot(i int) error {
	t, s := &b.taken[i], b.slot(i)
	e := &SlotError{Layer: b.layer, Expert: b.ID(i), Slot: t.Slot, WantExpert: int(t.Expert), WantGeneration: int(t.Generation)}
	if s.place.filled {
		e.Found, e.Generation = int(s.expert.Expert), int(s.expert.Generation)
	}
	return e
}
