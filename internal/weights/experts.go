package weights

import (
	"context"
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Experts keeps experts in slots of VRAM, and fetches those that a step misses. The goroutine that runs the steps calls its methods; any goroutine may
// call Stats.
//
// An expert that a batch has taken keeps its slot until the batch is released with the value that the compute timeline has once its last reader has
// run; the next upload to the slot waits for that value on the device. A slot counts the experts that have been in it: its address is given out only
// while slot and count are those of the expert taken.
type Experts struct {
	Counters ExpertCounters // what the slots were asked for so far

	p        *plan.Experts  // the experts' part of the plan in use: classes of slots, host copies
	vram     *vram          // allocates the slots' memory
	sources  *sources       // where each expert's bytes come from, by layer of the model * p.Count + expert
	fetcher  *fetcher       // reads and uploads for experts
	classes  []slotClass    // slots of each size, as the plan classes them
	layers   []slottedLayer // for each layer of the model, the class of slots that its experts share
	batches  []*Batch       // every batch that was made, so that an abort can empty it
	step     int            // the step under way, counted from 1
	reads    []missFetch    // reads of missing experts under way, oldest first
	fromHost upload         // copies of missing experts that have host copies, submitted when all experts of a batch are taken
	fromDisk upload         // copies of missing experts that were read, submitted as the reads end
	evicted  []Evicted      // memory for the list that [Experts.Evicted] returns
}

// slotClass is the slots of one size, which the experts of some layers share, with the cache that says which expert has which slot.
type slotClass struct {
	cache  *expertcache.Cache // which expert has which slot
	blocks []*vk.Buffer       // the slots' memory
	slots  []slot             // the slots themselves
}

// slot is VRAM for one expert at a time.
type slot struct {
	place  Place             // the slot's memory, and the uploads to it
	expert expertcache.Taken // the expert that the slot was given to last
}

// holds reports whether the uploads of an expert's bytes to its slot are submitted.
func (s *slot) holds(t *expertcache.Taken) bool {
	return s.place.filled && s.expert.Generation == t.Generation && s.expert.Expert == t.Expert
}

// slottedLayer says which class of slots the experts of one layer of the model use.
type slottedLayer struct {
	class int // index of the class; -1: the layer's experts have no slots
	index int // index of the layer among the layers of the class
	unit  int // index in the plan of the unit that stands for the layer's experts
}

// Evicted is an expert that has lost its slot: its layer in the model, and its index in the layer.
type Evicted struct{ Layer, ID int }

// defaultPolicy is the eviction policy if Options.Policy is empty. On one topic it hits as often as use counts with the best fixed half-life, and more
// often where topics change: docs/experts.md has the table.
const defaultPolicy = "adaptive"

// newExperts lists where each expert's bytes come from, allocates slots and staging, and starts the readers of the disk. No expert is loaded. After an
// error the caller closes x.
func newExperts(ctx context.Context, s *Store) (x *Experts, err error) {
	p := s.o.Plan.Experts
	x = &Experts{p: p, vram: &s.vram, sources: s.newSources("experts", len(p.HostPlaces)*p.Count)}
	x.setLayers(s.o.Plan)
	x.setSources(s.o.Model, s.disk.stripe)
	x.evicted = make([]Evicted, 0, len(x.sources.list))
	policy := s.o.Policy
	if policy == "" {
		policy = defaultPolicy
	}
	x.classes = make([]slotClass, len(p.Classes))
	for i := range x.classes {
		if err := x.makeSlots(ctx, i, policy); err != nil {
			return x, err
		}
	}
	x.setFetchCosts()
	if x.fetcher, err = newFetcher(s, p.Staging, plan.ReadDepth*s.disk.drives); err != nil {
		return x, err
	}
	x.fromHost, x.fromDisk = upload{f: x.fetcher}, upload{f: x.fetcher}
	x.fetcher.start()
	return x, nil
}

// setLayers fills x.layers: for each layer of the model, the class of slots that its experts use.
func (x *Experts) setLayers(p *plan.Plan) {
	x.layers = make([]slottedLayer, len(x.p.HostPlaces))
	for l := range x.layers {
		x.layers[l].class = -1
	}
	for c := range x.p.Classes {
		for i, l := range x.p.Classes[c].Layers {
			x.layers[l] = slottedLayer{class: c, index: i}
		}
	}
	for i := range p.Units {
		if u := &p.Units[i]; u.Tier == plan.Cached {
			x.layers[u.Layer].unit = i
		}
	}
}

// setSources sets the sources of the experts of all layers with slots, when the store is made: replans keep them.
func (x *Experts) setSources(m *pack.Model, stripe int64) {
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Experts || u.Layer >= len(x.layers) || x.layers[u.Layer].class < 0 {
			continue
		}
		rest := x.p.HostPlaces[u.Layer][u.Expert]
		src := source{unit: u, tag: x.layers[u.Layer].unit, tier: plan.Host, block: rest.Block}
		if rest.Block < 0 {
			src.tier = plan.Disk
		}
		src.pieces = pieces(&plan.Unit{Unit: *u, Off: rest.Off}, x.p.Staging.SlotBytes, stripe)
		x.sources.list[u.Layer*x.p.Count+u.Expert] = src
	}
}

// makeSlots allocates the slots of a class, and makes the cache that gives them to experts and evicts by the named policy.
func (x *Experts) makeSlots(ctx context.Context, class int, policy string) error {
	c, p := &x.classes[class], &x.p.Classes[class]
	evicts, err := expertcache.ByName(policy)
	if err != nil {
		return err
	}
	if c.cache, err = expertcache.NewCache(len(p.Layers), x.p.Count, p.Slots(), evicts); err != nil {
		return err
	}
	sizes := make([]int64, len(p.Blocks))
	for b, n := range p.Blocks {
		sizes[b] = p.BlockBytes(n)
	}
	if c.blocks, err = x.vram.alloc(ctx, fmt.Sprintf("experts %d", class), sizes); err != nil {
		return err
	}
	for b, n := range p.Blocks {
		for k := range int64(n) {
			c.slots = append(c.slots, slot{place: Place{span: mem.Span{Buffer: c.blocks[b], Off: k * p.SlotBytes, Bytes: p.SlotBytes}}})
		}
	}
	return nil
}

// diskTimes is about how many times longer it takes to read an expert from disk than to upload its host copy.
const diskTimes = 16

// setFetchCosts tells the caches' policies that an expert without a host copy costs more to bring than one with a host copy. So experts with host
// copies are evicted first.
func (x *Experts) setFetchCosts() {
	for l := range x.layers {
		at := &x.layers[l]
		if at.class < 0 || x.p.HostCount == 0 {
			continue
		}
		for id := range x.p.Count {
			if x.sources.list[l*x.p.Count+id].tier != plan.Host {
				x.classes[at.class].cache.Weigh(at.index, int32(id), diskTimes)
			}
		}
	}
}

// Begin tells the cache's policy that a layer runs in a step. Steps are counted from 1.
func (x *Experts) Begin(step, layer int) {
	x.step = step
	l := &x.layers[layer]
	x.classes[l.class].cache.Begin(int64(step), l.index)
}

// has reports whether an expert of a layer has a slot.
func (x *Experts) has(layer int, id int32) bool {
	l := &x.layers[layer]
	return x.classes[l.class].cache.Has(l.index, id)
}

// Split appends the experts of a layer that have a slot to hits, and the others to misses. It takes none of them.
func (x *Experts) Split(layer int, ids, hits, misses []int32) (h, m []int32) {
	for _, id := range ids {
		if x.has(layer, id) {
			hits = append(hits, id)
		} else {
			misses = append(misses, id)
		}
	}
	return hits, misses
}

// Wave is how many missing experts of a layer should be taken at a time, so that the next ones are uploaded while the kernels compute with these. It
// depends on their size, and is at most half of the slots.
func (x *Experts) Wave(layer int) int {
	class := x.layers[layer].class
	p := &x.p.Classes[class]
	return max(1, min(max(x.p.Used, int(plan.WaveBytes/p.SlotBytes)), len(x.classes[class].slots)/2))
}

// Share is how many slots a layer would have if all layers that share its slots had equally many, rounded down. It bounds how many experts of a long
// prompt stay in slots after use.
func (x *Experts) Share(layer int) int {
	c := x.layers[layer].class
	return len(x.classes[c].slots) / len(x.p.Classes[c].Layers)
}

// Present is how many of a layer's experts have a slot.
func (x *Experts) Present(layer int) (n int) {
	for id := range int32(x.p.Count) {
		if x.has(layer, id) {
			n++
		}
	}
	return n
}

// Evicted lists the experts of all layers that have lost their slots since it was called last. The list is good until the next call.
func (x *Experts) Evicted() []Evicted {
	x.evicted = x.evicted[:0]
	for i := range x.classes {
		for _, e := range x.classes[i].cache.Left() {
			x.evicted = append(x.evicted, Evicted{x.p.Classes[i].Layers[int(e)/x.p.Count], int(e) % x.p.Count})
		}
	}
	return x.evicted
}

// abort waits for submitted uploads and empties all batches of a step that was aborted, whose last submission signals value. Experts whose uploads are
// not submitted lose their slots, though reads of their bytes may still be under way.
func (x *Experts) abort(value uint64) error {
	x.fetcher.waitedFor = xfer.Ticket{} // work that waits for these uploads may not have been submitted
	if err := x.fetcher.up.Wait(context.Background(), x.fetcher.up.Last()); err != nil {
		return err
	}
	for i := range x.reads {
		x.reads[i].dropped = true
	}
	for _, b := range x.batches {
		for i := range b.taken {
			t, c := &b.taken[i], &x.classes[x.layers[b.layer].class]
			c.cache.Release(*t)
			if !c.slots[t.Slot].holds(t) {
				c.cache.Drop(*t)
			}
		}
		b.taken = b.taken[:0]
	}
	for i := range x.classes {
		for k := range x.classes[i].slots {
			p := &x.classes[i].slots[k].place
			p.After = min(p.After, value)
		}
	}
	return nil
}

// shrink frees the blocks of slots that plan p no longer has, and evicts the experts in them. The device must be idle, and all batches empty.
func (x *Experts) shrink(p *plan.Experts) {
	for i := range x.classes {
		c, n := &x.classes[i], p.Classes[i].Slots()
		if n >= len(c.slots) {
			continue
		}
		c.cache.Shrink(n)
		c.slots = slices.Clip(c.slots[:n])
		blocks := len(p.Classes[i].Blocks)
		x.vram.free(c.blocks[blocks:])
		c.blocks = c.blocks[:blocks]
	}
	x.p = p
}

// close waits for reads and uploads under way, and frees staging, slots and host copies. No step or loading goroutine may be running.
func (x *Experts) close() (err error) {
	if x.fetcher != nil {
		err = x.fetcher.close()
	}
	for i := range x.classes {
		x.vram.free(x.classes[i].blocks)
		x.classes[i].blocks = nil
	}
	x.sources.close()
	return err
}
