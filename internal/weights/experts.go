package weights

import (
	"context"
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Experts keeps experts in slots of VRAM, and brings those that a step misses. The step's goroutine calls its methods, but for Stats.
//
// An expert that was taken stays where it is until it is released with the value that the compute timeline has once its
// last reader has run; its slot's next upload waits for that on the device. A slot counts the experts that have been in
// it: an address is given out only where slot and count are still those of what was taken.
type Experts struct {
	s       *Store
	p       *plan.Experts
	up      *xfer.Uploader
	pool    *file.Pool
	classes []slotClass
	layers  []cachedLayer // by layer of the model
	resting []resting     // by layer of the model * p.Count + expert
	pins    []*vk.Buffer  // of the host tier
	ctx     context.Context
	cancel  context.CancelFunc

	batches []*Batch
	step    int
	flying  []flight        // reads under way, oldest first
	free    []*file.Request // for more of them
	waited  xfer.Ticket     // what the step's queue has waited for
	listed  []int           // of the batch being taken: whose copies are listed
	out     listing         // of it
	landing listing         // of a read that has ended
	gone    []Gone          // scratch
	filling bool            // the host tier; under the store's lock

	count expertCounters
}

// slotClass is the slots of a plan's class, and who is in them.
type slotClass struct {
	cache  *expertcache.Cache
	blocks []*vk.Buffer
	slots  []slot
}

// slot is a place for an expert.
type slot struct {
	span   mem.Span
	holds  expertcache.Taken // whose bytes are there once ticket is reached; generation 0: nobody's
	ticket xfer.Ticket       // of the uploads of it
	before xfer.Ticket       // of uploads of who was there before, that nobody has waited for
	reads  uint64            // compute value of its last reader
	unread bool              // nobody has waited for ticket
}

// cachedLayer says where a layer's experts may be.
type cachedLayer struct {
	class, index int // of the class, and among its layers; class -1: it has none
	unit         int // of the plan
}

// Gone is an expert that is in VRAM no more.
type Gone struct{ Layer, ID int }

// Left lists who has left VRAM since it was asked last; the list is good until then.
func (x *Experts) Left() []Gone {
	x.gone = x.gone[:0]
	for i := range x.classes {
		for _, e := range x.classes[i].cache.Left() {
			x.gone = append(x.gone, Gone{x.p.Classes[i].Layers[int(e)/x.p.Count], int(e) % x.p.Count})
		}
	}
	return x.gone
}

// Batch is experts of a layer that were taken together.
type Batch struct {
	layer int
	taken []expertcache.Taken
}

// Len is how many are taken.
func (b *Batch) Len() int { return len(b.taken) }

const spareRequests = 8 // beside one for each slot of staging

// newExperts allocates the slots, where the plan has any.
func (s *Store) newExperts(ctx context.Context) (err error) {
	p := s.o.Plan.Experts
	if p == nil {
		return nil
	}
	x := &Experts{s: s, p: p}
	s.experts = x
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.rest()
	x.gone = make([]Gone, 0, len(x.resting))
	if err := x.makeSlots(ctx); err != nil {
		return err
	}
	o := xfer.Options{Slots: p.Staging.Slots, SlotBytes: p.Staging.SlotBytes, Queues: s.o.Queues, Clocked: s.o.Trace != nil, Done: s.copied}
	if x.up, err = xfer.New(s.o.Device, s.o.Host, o); err != nil {
		return err
	}
	for range p.Staging.Slots + spareRequests {
		x.free = append(x.free, file.NewRequest())
	}
	x.pool = file.NewPool(plan.ReadDepth*s.drives, s.o.Fault)
	x.pool.Limit(s.o.DiskRate)
	x.pool.Watch(s.read())
	return nil
}

// start begins to fill the host tier.
func (x *Experts) start() {
	blocks := x.p.HostBlocks // here: a plan that shrinks meanwhile has the same
	x.s.crew.Go(func() {
		if err := x.pin(blocks); err != nil {
			x.s.fail(err)
		}
	})
	x.fillAgain()
}

// fillAgain fills what is missing in the host tier, unless that is being done.
func (x *Experts) fillAgain() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if arrived, total := x.kept(); x.filling || arrived == total {
		return
	}
	x.filling = true
	x.s.crew.Go(func() {
		err := x.fill()
		x.s.mu.Lock()
		x.filling = false
		x.s.mu.Unlock()
		if err != nil {
			x.s.fail(err)
		}
	})
}

// defaultPolicy hits as often as the best half-life does on one topic, and more often where topics change: docs/experts.md has
// the table.
const defaultPolicy = "adaptive"

// rest notes where each expert rests, and each layer's class.
func (x *Experts) rest() {
	s := x.s
	x.layers = make([]cachedLayer, len(x.p.Rest))
	x.resting = make([]resting, len(x.p.Rest)*x.p.Count)
	for l := range x.layers {
		x.layers[l].class = -1
	}
	for c := range x.p.Classes {
		for i, l := range x.p.Classes[c].Layers {
			x.layers[l] = cachedLayer{class: c, index: i}
		}
	}
	for i := range s.o.Plan.Units {
		if u := &s.o.Plan.Units[i]; u.Tier == plan.Cached {
			x.layers[u.Layer].unit = i
		}
	}
	for i := range s.o.Model.Units {
		u := &s.o.Model.Units[i]
		if u.Kind != pack.Experts || u.Layer >= len(x.layers) || x.layers[u.Layer].class < 0 {
			continue
		}
		at := x.p.Rest[u.Layer][u.Expert]
		r := &x.resting[u.Layer*x.p.Count+u.Expert]
		r.unit, r.block, r.cached = u, at.Block, x.layers[u.Layer].unit
		r.pieces = pieces(&plan.Unit{Unit: *u, Off: at.Off}, x.p.Staging.SlotBytes, stripeOf(s.o.Model))
	}
}

// makeSlots allocates VRAM for each class.
func (x *Experts) makeSlots(ctx context.Context) error {
	x.classes = make([]slotClass, len(x.p.Classes))
	for i := range x.classes {
		c, p := &x.classes[i], &x.p.Classes[i]
		policy, err := expertcache.ByName(x.s.policy())
		if err != nil {
			return err
		}
		if c.cache, err = expertcache.NewCache(len(p.Layers), x.p.Count, p.Slots(), policy); err != nil {
			return err
		}
		sizes := make([]int64, len(p.Blocks))
		for b, n := range p.Blocks {
			sizes[b] = p.BlockBytes(n)
		}
		if c.blocks, err = x.s.alloc(ctx, fmt.Sprintf("experts %d", i), sizes); err != nil {
			return err
		}
		for b, n := range p.Blocks {
			for k := range int64(n) {
				c.slots = append(c.slots, slot{span: mem.Span{Buffer: c.blocks[b], Off: k * p.SlotBytes, Bytes: p.SlotBytes}})
			}
		}
	}
	x.weigh()
	return nil
}

// diskTimes is how many times as long as a link a disk takes, about.
const diskTimes = 16

// weigh holds experts dearer that come from disk where others come from RAM: VRAM should have those that RAM has not.
func (x *Experts) weigh() {
	for l := range x.layers {
		at := &x.layers[l]
		if at.class < 0 || x.p.HostCount == 0 {
			continue
		}
		for id := range x.p.Count {
			if x.resting[l*x.p.Count+id].block < 0 {
				x.classes[at.class].cache.Weigh(at.index, int32(id), diskTimes)
			}
		}
	}
}

// abort empties all batches of a step that was stopped; value is the last one that it submitted. What has not come is
// forgotten, though the disk may still be reading it.
func (x *Experts) abort(value uint64) error {
	x.waited = xfer.Ticket{} // what was asked for may not have been submitted
	if err := x.up.Wait(context.Background(), x.up.Last()); err != nil {
		return err
	}
	for i := range x.flying {
		x.flying[i].orphan = true
	}
	for _, b := range x.batches {
		for i := range b.taken {
			t := &b.taken[i]
			c := &x.classes[x.layers[b.layer].class]
			c.cache.Release(*t)
			if !c.slots[t.Slot].has(t) {
				c.cache.Drop(*t)
			}
		}
		b.taken = b.taken[:0]
	}
	for i := range x.classes {
		for k := range x.classes[i].slots {
			s := &x.classes[i].slots[k]
			s.reads = min(s.reads, value)
		}
	}
	return nil
}

// shrink gives back the blocks of slots that p has no more. The device is idle, and no batch holds any.
func (x *Experts) shrink(p *plan.Experts) {
	for i := range x.classes {
		c, n := &x.classes[i], p.Classes[i].Slots()
		if n >= len(c.slots) {
			continue
		}
		c.cache.Shrink(n)
		c.slots = slices.Clip(c.slots[:n])
		for b := len(p.Classes[i].Blocks); b < len(c.blocks); b++ {
			x.s.o.VRAM.Free(c.blocks[b])
		}
		c.blocks = c.blocks[:len(p.Classes[i].Blocks)]
	}
	x.p = p
}

// close ends reads and copies; who fills the host tier has ended.
func (x *Experts) close() (err error) {
	if x.pool != nil {
		x.pool.Close()
	}
	if x.up != nil {
		err = x.up.Close()
		x.up = nil
	}
	for i := range x.classes {
		x.s.free(x.classes[i].blocks)
		x.classes[i].blocks = nil
	}
	for _, b := range x.pins {
		if b != nil {
			x.s.o.Host.Free(b)
		}
	}
	x.pins = nil
	return err
}
