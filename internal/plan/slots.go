package plan

import (
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// Experts is how the experts of all layers share slots of VRAM if not all fit, and where each expert's copy outside VRAM is. One unit of
// tier [Cached] stands for all experts of a layer.
type Experts struct {
	Layers int // number of layers that have experts
	Count  int // number of experts of a layer
	Used   int // number of a layer's experts that a token uses

	Classes    []SlotClass   // the slots, one class for each size of experts
	HostPlaces [][]HostPlace // by layer of the model and expert: place of the expert's copy in RAM; nil: the layer has no experts

	HostBlocks []int64 // bytes of each block of pinned RAM that holds experts
	HostCount  int     // number of experts with a copy in HostBlocks; the others are only on disk
	Staging    Staging // pinned RAM that uploads of experts from disk pass through
}

// SlotClass is the slots for experts of about the same size.
type SlotClass struct {
	Layers    []int // the model's layers whose experts use these slots, ascending
	SlotBytes int64 // bytes of a slot: the size of the largest of these experts
	Blocks    []int // number of slots in each allocation
	BlockMost int   // most slots in an allocation
}

// HostPlace is the place of an expert's copy in pinned RAM. If the expert has none, and is only on disk, Block is -1.
type HostPlace struct {
	Block int   // index into HostBlocks; -1: there is no copy
	Off   int64 // offset in the block
}

const (
	slotSpread    = 20 // layers share a class of slots if the sizes of their experts differ by at most a 20th
	expertStaging = 24 // most slots of staging memory for experts from disk
)

// Slots is the number of slots of the class.
func (c *SlotClass) Slots() (n int) {
	for _, b := range c.Blocks {
		n += b
	}
	return n
}

// BlockBytes is the size of an allocation of n slots.
func (c *SlotClass) BlockBytes(n int) int64 { return roundUp(int64(n)*c.SlotBytes, granule) }

// Bytes is the VRAM that the class takes.
func (c *SlotClass) Bytes() (n int64) {
	for _, b := range c.Blocks {
		n += c.BlockBytes(b)
	}
	return n
}

// Slots is the number of slots of all classes.
func (x *Experts) Slots() (n int) {
	for i := range x.Classes {
		n += x.Classes[i].Slots()
	}
	return n
}

// SlotBytes is the VRAM that all slots take; 0 if x is nil.
func (x *Experts) SlotBytes() (n int64) {
	if x == nil {
		return 0
	}
	for i := range x.Classes {
		n += x.Classes[i].Bytes()
	}
	return n
}

// Total is the number of experts of all layers.
func (x *Experts) Total() int { return x.Layers * x.Count }

// cachedUnit makes the unit of tier [Cached] that stands for all experts of a layer; ok is false if the layer has none.
func cachedUnit(m *pack.Model, layer int) (u Unit, ok bool) {
	experts := m.Experts(layer)
	if len(experts) == 0 {
		return Unit{}, false
	}
	u = Unit{Unit: pack.Join(fmt.Sprintf("layer %d experts", layer), experts), Tier: Cached, Experts: len(experts)}
	u.Bytes, u.Extents = 0, nil
	for i := range experts {
		u.Bytes += experts[i].Bytes
	}
	return u, true
}

// classes groups the layers by the size of their largest experts, and gives each class the fewest slots that it can have. No expert has a copy in RAM yet.
func classes(h *arch.Hyper, m *pack.Model, blockBytes int64) *Experts {
	x := &Experts{Count: h.Experts.Count, Used: h.Experts.Used, HostPlaces: make([][]HostPlace, h.BlockCount)}
	type sized struct {
		layer int
		bytes int64
	}
	var list []sized
	for l := range h.BlockCount {
		var most int64
		for _, u := range m.Experts(l) {
			most = max(most, roundUp(u.Bytes, pack.TensorAlign))
		}
		if most > 0 {
			list = append(list, sized{l, most})
		}
	}
	x.Layers = len(list)
	slices.SortStableFunc(list, func(a, b sized) int { return int(b.bytes - a.bytes) })
	for _, s := range list {
		n := len(x.Classes)
		if n == 0 || s.bytes < x.Classes[n-1].SlotBytes-x.Classes[n-1].SlotBytes/slotSpread {
			x.Classes = append(x.Classes, SlotClass{SlotBytes: s.bytes})
			n++
		}
		x.Classes[n-1].Layers = append(x.Classes[n-1].Layers, s.layer)
	}
	for i := range x.Classes {
		c := &x.Classes[i]
		slices.Sort(c.Layers)
		c.BlockMost = max(int(min(blockBytes, maxBlock)/c.SlotBytes), x.leastSlots())
		c.Blocks = []int{x.leastSlots()}
	}
	return x
}

// leastSlots is the fewest slots that a class can have: the number of a layer's experts that a token uses, which must be in VRAM together.
func (x *Experts) leastSlots() int { return min(x.Used, x.Count) }

// grow adds slots to classes that have the fewest slots: each class gets slots for the same share of its experts. The added slots take at most bytes of VRAM.
func (x *Experts) grow(bytes int64) {
	var all int64
	for i := range x.Classes {
		all += x.Classes[i].experts(x.Count) * x.Classes[i].SlotBytes
	}
	for i := range x.Classes {
		c := &x.Classes[i]
		most, least := c.experts(x.Count), c.Bytes()
		share := least + int64(float64(bytes)*float64(most*c.SlotBytes)/float64(all))
		n := int(min(share/c.SlotBytes, most))
		for c.fill(n); c.Bytes() > share && n > x.leastSlots(); c.fill(n) { // the sizes of blocks are rounded up, so n slots may take more
			n--
		}
	}
}

// experts is the number of experts that share the class's slots, for perLayer experts in a layer.
func (c *SlotClass) experts(perLayer int) int64 { return int64(len(c.Layers) * perLayer) }

// fill gives the class n slots in as few allocations as possible.
func (c *SlotClass) fill(n int) {
	c.Blocks = nil
	for n > 0 {
		b := min(n, c.BlockMost)
		c.Blocks = append(c.Blocks, b)
		n -= b
	}
}

// shrink gives back one allocation: the last one of the class with the most slots for each layer, among classes with more than one allocation. It reports
// false if no class has more than one.
func (x *Experts) shrink() bool {
	best, most := -1, 0.0
	for i := range x.Classes {
		c := &x.Classes[i]
		if n := len(c.Blocks); n > 1 {
			if share := float64(c.Slots()) / float64(len(c.Layers)); share > most {
				best, most = i, share
			}
		}
	}
	if best < 0 {
		return false
	}
	c := &x.Classes[best]
	c.Blocks = slices.Clone(c.Blocks[:len(c.Blocks)-1])
	return true
}

// clone copies x, so that changes of the copy's classes do not change x.
func (x *Experts) clone() *Experts {
	if x == nil {
		return nil
	}
	y := *x
	y.Classes = slices.Clone(x.Classes)
	return &y
}

// keepInRAM plans copies in pinned RAM of as many experts as fit bytes, spread evenly over the layers and within each. All others stay only on
// disk: their uploads pass through staging memory, whose slots hold at most piece bytes. It returns the bytes taken, staging included.
func (x *Experts) keepInRAM(m *pack.Model, bytes, piece int64) (taken int64) {
	var units []*pack.Unit
	var sizes []int64
	var longest int64
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Experts || u.Layer < 0 || u.Layer >= len(x.HostPlaces) {
			continue
		}
		units, sizes = append(units, u), append(sizes, HostExtents(u, nil))
		for _, e := range u.Extents {
			longest = max(longest, e.Bytes)
		}
	}
	x.Staging = Staging{Slots: leastStaging, SlotBytes: min(piece, roundUp(longest+ReadAlign, ReadAlign))}
	staging := func() int64 { return roundUp(int64(x.Staging.Slots)*x.Staging.SlotBytes, granule) }
	place := func(disk []bool) bool {
		x.HostBlocks, x.HostCount = nil, 0
		for i, u := range units {
			if x.HostPlaces[u.Layer] == nil {
				x.HostPlaces[u.Layer] = make([]HostPlace, x.Count)
			}
			r := &x.HostPlaces[u.Layer][u.Expert]
			if *r = (HostPlace{Block: -1}); disk[i] {
				continue
			}
			last := len(x.HostBlocks) - 1
			if last < 0 || x.HostBlocks[last]+sizes[i] > maxBlock {
				x.HostBlocks = append(x.HostBlocks, 0)
				last++
			}
			*r = HostPlace{last, x.HostBlocks[last]}
			x.HostBlocks[last] += sizes[i]
			x.HostCount++
		}
		rounded(x.HostBlocks)
		return sum(x.HostBlocks)+staging() <= bytes
	}
	if place(make([]bool, len(units))) {
		return staging() + sum(x.HostBlocks)
	}
	x.Staging.Slots = int(min(expertStaging, max(leastStaging, bytes/8/x.Staging.SlotBytes)))
	low, high := 0, len(units) // bounds of how many copies fit
	marked := func(n int) []bool {
		disk := make([]bool, len(units))
		for i := range disk { // marks all but n experts, spread evenly
			disk[i] = (i+1)*n/len(units) == i*n/len(units)
		}
		return disk
	}
	for low < high {
		if mid := (low + high + 1) / 2; place(marked(mid)) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	place(marked(low))
	return staging() + sum(x.HostBlocks)
}

// addTraffic adds, to the plan's totals, the bytes of a token's missing experts that are uploaded and read from disk, on average if all experts are used
// equally often. With sign -1 it subtracts them.
func (p *Plan) addTraffic(sign int64) {
	x := p.Experts
	if x == nil {
		return
	}
	for i := range p.Units {
		u := &p.Units[i]
		if u.Tier != Cached {
			continue
		}
		bytes := float64(u.Bytes) * float64(x.Used) / float64(x.Count) * (1 - x.SlotShare(u.Layer))
		p.StreamedBytes += sign * int64(bytes)
		p.DiskBytes += sign * int64(bytes*x.DiskShare())
	}
}

// DiskShare is the share of all experts that are only on disk.
func (x *Experts) DiskShare() float64 { return 1 - float64(x.HostCount)/float64(x.Total()) }

// SlotShare is the share of a layer's experts that have slots in VRAM, on average over the layers that use the same class of slots; 0: the layer has no
// experts.
func (x *Experts) SlotShare(layer int) float64 {
	for i := range x.Classes {
		if c := &x.Classes[i]; slices.Contains(c.Layers, layer) {
			return min(1, float64(c.Slots())/float64(len(c.Layers)*x.Count))
		}
	}
	return 0
}
