package weights

import (
	"context"
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/engine/expert"
	"leat/engine/plan"
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

	batches  []*Batch
	step     int
	flying   []flight        // reads under way, oldest first
	free     []*file.Request // for more of them
	waited   xfer.Ticket     // what the step's queue has waited for
	foresees bool            // what is taken nobody has asked for
	listed   []int           // of the batch being taken: whose copies are listed
	out      listing         // of it
	landing  listing         // of a read that has ended

	count expertCounters
}

// slotClass is the slots of a plan's class, and who is in them.
type slotClass struct {
	cache  *expert.Cache
	blocks []*vk.Buffer
	slots  []slot
}

// slot is a place for an expert.
type slot struct {
	span   mem.Span
	holds  expert.Taken // whose bytes are there once ticket is reached; generation 0: nobody's
	ticket xfer.Ticket  // of the uploads of it
	before xfer.Ticket  // of uploads of who was there before, that nobody has waited for
	reads  uint64       // compute value of its last reader
	unread bool         // nobody has waited for ticket
}

// cachedLayer says where a layer's experts may be.
type cachedLayer struct {
	class, index int // of the class, and among its layers; class -1: it has none
	unit         int // of the plan
}

// Batch is experts of a layer that were taken together.
type Batch struct {
	layer int
	taken []expert.Taken
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
	for _, do := range []func() error{x.pin, x.fill} {
		x.s.crew.Go(func() {
			if err := do(); err != nil {
				x.s.fail(err)
			}
		})
	}
}

// defaultPolicy hits as often as the best half-life does on one topic, and more often where topics change: RATIONALE.md has
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
		policy, err := expert.ByName(x.s.policy())
		if err != nil {
			return err
		}
		if c.cache, err = expert.NewCache(len(p.Layers), x.p.Count, p.Slots(), policy); err != nil {
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

// NewBatch makes an empty batch, which the next step that is stopped empties again.
func (x *Experts) NewBatch() *Batch {
	b := &Batch{taken: make([]expert.Taken, 0, x.p.Count)}
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

// waveBytes is what should come together: enough for the link to run at full speed.
const waveBytes = 64 << 20

// Wave is how many missing experts of a layer should be taken together: so that others come while these are computed.
func (x *Experts) Wave(layer int) int {
	p := &x.p.Classes[x.layers[layer].class]
	return max(1, min(max(x.p.Used, int(waveBytes/p.SlotBytes)), len(x.classes[x.layers[layer].class].slots)/2))
}

// Take takes the first of ids that there are slots for into b, which must be empty, and has the bytes of those that are
// not there brought. It returns how many it took: none, where all slots are taken.
func (x *Experts) Take(ctx context.Context, layer int, ids []int32, b *Batch) (n int, err error) {
	if len(b.taken) > 0 {
		return 0, fmt.Errorf("take experts of layer %d: the batch still has %d of layer %d", layer, len(b.taken), b.layer)
	}
	l := &x.layers[layer]
	c := &x.classes[l.class]
	b.layer = layer
	before := c.cache.Stats()
	b.taken = c.cache.Take(l.index, ids, b.taken)
	x.count.took(c.cache.Stats(), before)
	x.listed = x.listed[:0]
	x.out.clear()
	var now uint64
	for i := range b.taken {
		if t := &b.taken[i]; !t.Hit {
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

// Near reports whether an expert is not in VRAM, but in RAM.
func (x *Experts) Near(layer int, id int32) bool {
	l := &x.layers[layer]
	if x.classes[l.class].cache.Has(l.index, id) {
		return false
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.resting[layer*x.p.Count+int(id)].state == present
}

// Foresee is Take of what nobody has asked for yet, of experts that are [Experts.Near].
func (x *Experts) Foresee(ctx context.Context, layer int, ids []int32, b *Batch) error {
	if len(ids) == 0 {
		return nil
	}
	x.foresees = true
	_, err := x.Take(ctx, layer, ids, b)
	x.foresees = false
	return err
}

// Judge empties b, which was foreseen: what has pairs, by expert of the layer, stays; the others' slots are the next
// ones to be taken.
func (x *Experts) Judge(b *Batch, pairs []int32) error {
	c := &x.classes[x.layers[b.layer].class]
	for i := range b.taken {
		t := &b.taken[i]
		if !x.slotOf(b.layer, t).has(t) {
			return x.wrong(b.layer, t)
		}
		c.cache.Release(*t)
		if pairs[x.ID(b, i)] > 0 {
			x.count.foreseen.Add(1)
		} else {
			c.cache.Drop(*t)
		}
	}
	b.taken = b.taken[:0]
	return nil
}

// of is the expert's place of rest.
func (x *Experts) of(layer int, t *expert.Taken) *resting {
	return &x.resting[layer*x.p.Count+int(t.Expert)-x.layers[layer].index*x.p.Count]
}

// slotOf is where it was taken to.
func (x *Experts) slotOf(layer int, t *expert.Taken) *slot {
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

func (s *slot) has(t *expert.Taken) bool {
	return s.holds.Generation == t.Generation && s.holds.Expert == t.Expert
}

func (x *Experts) wrong(layer int, t *expert.Taken) error {
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
