package plan

import (
	"slices"

	"leat/decompose/pack"
)

// build makes the plan for sessions of ctx tokens and steps of up to chunk rows: it gives every unit its tier and its place, and adds up the plan's totals.
// The error is a [*BudgetError] if this needs more than the budget.
func (s *sizing) build(ctx, chunk int) (*Plan, error) {
	p := &Plan{
		ContextLength: ctx, Chunk: chunk, LogitRows: logitRows(s.h, chunk), Sessions: s.budget.Sessions,
		KV: s.kv(ctx), Scratch: s.scratch(ctx, chunk), Totals: Totals{DeviceBudget: s.budget.DeviceBytes}, budget: s.budget,
		InPlace: s.budget.InPlace,
	}
	streamed, ring := s.streamed(s.budget.DeviceBytes - s.fixed(ctx, chunk))
	if streamed == nil {
		return nil, s.tooSmall(ctx)
	}
	p.Ring = ring
	p.Units = append([]Unit(nil), s.units...)
	for i := range p.Units {
		if streamed[i] {
			p.Units[i].Tier = Disk
		}
	}
	p.Blocks = placeResident(selectUnits(p.Units, func(i int) bool { return !streamed[i] }), s.budget.BlockBytes)
	s.placeOuter(p)
	s.sizeStaging(p)
	p.setStreamTiers(selectUnits(p.Units, func(i int) bool { return p.Units[i].Tier == Disk }))
	p.DeviceBytes = sum(p.Blocks) + sum(p.Ring) + p.KV.Bytes() + p.Scratch.Bytes + s.experts.SlotBytes()
	if p.DeviceBytes > s.budget.DeviceBytes {
		return nil, s.tooSmall(ctx)
	}
	if s.experts != nil {
		s.placeExperts(p)
	}
	s.keepTables(p)
	return p, nil
}

// placeOuter adds the units outside the layers and the head to the plan, in a block of their own: those used before the layers first, the final norm before the
// head.
func (s *sizing) placeOuter(p *Plan) {
	off := int64(0)
	for _, u := range s.outer {
		at := 0
		if u.Kind == pack.Norm {
			at = len(p.Units) - s.heads
		}
		u.Block, u.Off = len(p.Blocks), off
		off += roundUp(u.Bytes, 256)
		p.Units = slices.Insert(p.Units, at, u)
	}
	p.Blocks = append(p.Blocks, roundUp(off, granule))
}

// placeExperts gives the rest of the VRAM budget to slots for experts, and the rest of the RAM budget to copies of experts. It adds a unit for
// each layer's experts to the plan, and the expected uploads and reads of missing experts to its totals.
func (s *sizing) placeExperts(p *Plan) {
	x := s.experts.clone()
	least := x.SlotBytes()
	x.grow(s.budget.DeviceBytes - p.DeviceBytes)
	p.DeviceBytes += x.SlotBytes() - least
	p.HostBytes += x.keepInRAM(s.m, s.budget.HostBytes-p.HostBytes, ReadBytes)
	p.Experts = x
	for i := 0; i < len(p.Units); i++ {
		last := i+1 == len(p.Units) || p.Units[i+1].Kind != pack.Layer || p.Units[i+1].Layer != p.Units[i].Layer || p.Units[i+1].AfterExperts
		if p.Units[i].Kind != pack.Layer || !last || p.Units[i].AfterExperts {
			continue
		}
		if u, ok := cachedUnit(s.m, p.Units[i].Layer); ok {
			i++
			p.Units = slices.Insert(p.Units, i, u)
		}
	}
	p.addTraffic(1)
}

// streamed chooses the units to stream: as few bytes as possible, spread as the budget says, so that the resident units and the ring take at most room
// bytes of VRAM. It returns a mark for each unit, and the sizes of the ring's blocks. The ring has the size of ringBytes or, if no choice fits with
// that, the least size. If not even streaming all units fits, streamed returns nil.
func (s *sizing) streamed(room int64) (streamed []bool, ring []int64) {
	sizes := make([]int64, len(s.units))
	for i, u := range s.units {
		sizes[i] = u.Bytes
	}
	// A ring of the wanted size matters more than resident units, but less than that the model runs.
	for _, least := range []bool{false, true} {
		fits := func(streamed []bool) bool {
			ring = s.ringFor(streamed, least)
			return s.packResident(streamed)+sum(ring) <= room
		}
		if streamed = fewest(sizes, s.budget.Spread, fits); streamed != nil {
			fits(streamed) // sets ring
			break
		}
	}
	return streamed, ring
}

// ringFor returns the sizes of the ring's blocks for the streamed units; nil: none is streamed. With least it is the smallest ring, which holds the
// largest streamed unit twice.
func (s *sizing) ringFor(streamed []bool, least bool) []int64 {
	var largest, bytes int64
	for i, u := range s.units {
		if streamed[i] {
			largest = max(largest, u.Bytes)
			bytes += roundUp(u.Bytes, 256)
		}
	}
	switch {
	case bytes == 0:
		return nil
	case least:
		return ringBlocks(2*largest, largest)
	}
	return ringBlocks(max(2*largest, min(s.ringBytes(largest), bytes)), largest)
}

// Sixteen direct reads of 8 MiB fill a disk's queue. The link uploads from the other slots of staging memory meanwhile.
const (
	ReadDepth    = 16      // most reads in flight
	ReadBytes    = 8 << 20 // most bytes of a read
	mostStaging  = 24      // most slots of staging memory, used unless RAM is short
	leastStaging = 4       // fewest slots of staging memory
)

// sizeStaging chooses the number of slots of staging memory, fewer if RAM is short, and their size: a slot holds one read.
// It sets the plan's HostBytes to the size of all slots.
func (s *sizing) sizeStaging(p *Plan) {
	var longest int64
	for i := range p.Units {
		for _, e := range p.Units[i].Extents {
			longest = max(longest, e.Bytes)
		}
	}
	piece, most := int64(ReadBytes), int64(mostStaging)
	if s.budget.StagingBytes > 0 {
		piece = roundUp(max(s.budget.StagingBytes, 2*ReadAlign), ReadAlign)
	}
	slot := min(piece, roundUp(longest+ReadAlign, ReadAlign)) // a read is widened to whole blocks of the disk
	slots := min(most, max(leastStaging, s.budget.HostBytes/8/slot))
	if s.budget.InPlace {
		slots = ReadDepth
	}
	if s.budget.StagingSlots > 0 {
		slots = int64(s.budget.StagingSlots)
	}
	p.Staging = Staging{Slots: int(slots), SlotBytes: slot}
	if !s.budget.InPlace {
		p.HostBytes = roundUp(slots*slot, granule)
	}
}

// setStreamTiers gives each streamed unit its tier: Host as far as the RAM budget goes, Disk for the others, spread evenly. It adds the host tier's
// new blocks to the plan, and the sizes of the blocks and units to its totals.
func (p *Plan) setStreamTiers(units []*Unit) {
	sizes := make([]int64, len(units))
	for i, u := range units {
		sizes[i] = u.Bytes
	}
	var blocks []int64
	fits := func(disk []bool) bool {
		var host []*Unit
		for i, u := range units {
			if u.Tier = Disk; !disk[i] {
				u.Tier = Host
				host = append(host, u)
			}
		}
		blocks = placeHost(host, len(p.HostBlocks))
		return sum(blocks) <= p.budget.HostBytes-p.HostBytes || len(blocks) == 0
	}
	disk := fewest(sizes, Even, fits)
	fits(disk)
	p.HostBlocks = append(p.HostBlocks, blocks...)
	p.HostBytes += sum(blocks)
	p.StreamedBytes += sum(sizes)
	p.DiskBytes += markedBytes(sizes, disk)
}
