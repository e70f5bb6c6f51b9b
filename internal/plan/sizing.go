package plan

import (
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/shaders"
)

// sizing chooses context, chunk, and which units are resident.
type sizing struct {
	h       *arch.Hyper
	m       *pack.Model
	b       Budget
	kept    []arch.Value // values of the rows that want logits, see [arch.KeepAsked]
	experts *Experts     // with the fewest slots; nil: no experts share slots
	units   []Unit       // whose tier is to be chosen
	norm    pack.Unit    // the final norm, always resident
	embdRow int64        // bytes of one row of token_embd
	embd    int64        // bytes of token_embd
	heads   int          // pieces of the head among units, at their end
	largest int64        // bytes of the largest unit
	local   int64        // most VRAM that scratch and KV cache may take, which can't lie in memory shared with the host
}

const (
	minContext   = 512
	maxChunk     = 512       // rows of a step when all is resident
	streamChunk  = 2048      // rows of a step with streamed units, which cross the link once a step
	minChunk     = 8         // rows of a step at least
	ringReserve  = 256 << 20 // bytes of the ring beyond its two units, see ringBytes
	ringFraction = 16        // ringReserve is at most this part of the VRAM budget

	leastHalves, mostHalves = 16 << 20, 512 << 20 // bytes for two slices of weights in halves: one should fill the device when it is multiplied
	halvesFraction          = 24                  // both slices take at most this part of the VRAM budget
	hardly                  = 64                  // this part of the streamed weights more costs hardly any time, see worth
)

// fixed is what must be in VRAM whatever is streamed: scratch, KV cache, the fewest slots of experts, and the final norm,
// which has a block to itself.
func (s *sizing) fixed(ctx, chunk int) int64 {
	kv := kvSize(s.h, s.b.KVType, ctx, s.b.Sessions)
	return kv.Bytes() + s.scratch(ctx, chunk).Bytes + roundUp(s.norm.Bytes, granule) + s.experts.SlotBytes()
}

func (s *sizing) scratch(ctx, chunk int) Scratch {
	return scratchSize(s.h, s.kept, chunk, logitRows(s.h, chunk), kvPages(ctx)*s.b.Sessions, s.b.Sessions, s.embdRow, s.halves(), s.b.Few)
}

// halves is the memory to decode weights into, two slices at a time; 0 where products are not computed in halves.
func (s *sizing) halves() int64 {
	if !s.b.Matrices {
		return 0
	}
	k := uint32(longestRow(s.h))
	most := 2 * shaders.TilesBytes(k, uint32(s.h.EmbeddingLength)) // of the largest matrix, all
	if s.b.Halves > 0 {
		return min(most, s.b.Halves)
	}
	return min(most, max(leastHalves, min(mostHalves, s.b.DeviceBytes/halvesFraction)))
}

// ring is the VRAM of the smallest ring: it holds the largest unit twice.
func (s *sizing) ring() int64 { return sum(ringBlocks(2*s.largest, s.largest)) }

// ringBytes is the ring for units of at most largest bytes: one that is read, one that
// comes, and as much again as the link brings while a token ends and the next begins.
func (s *sizing) ringBytes(largest int64) int64 {
	if s.b.RingBytes > 0 {
		return max(s.b.RingBytes, 2*largest)
	}
	if s.b.InPlace { // it holds the reads under way too
		return 2*largest + min(ringReserve+ReadDepth*ReadBytes, 2*s.b.DeviceBytes/ringFraction)
	}
	return 2*largest + min(ringReserve, s.b.DeviceBytes/ringFraction)
}

// resident is the VRAM that all units take if none is streamed.
func (s *sizing) resident() int64 { return s.blocks(make([]bool, len(s.units))) }

// blocks is the VRAM that the units that are not streamed take. It gives each of these a block and an offset.
func (s *sizing) blocks(streamed []bool) int64 {
	return sum(deal(chosen(s.units, func(i int) bool { return !streamed[i] }), s.b.BlockBytes))
}

// choose picks the context and the chunk: all resident if that leaves a usable
// context; else a context of at most a quarter of the budget beside the ring.
func (s *sizing) choose() (ctx, chunk int, err error) {
	trained := s.h.ContextLength
	contexts := []int{s.b.ContextLength}
	if s.b.ContextLength == 0 {
		contexts = nil
		for c := trained; c > minContext; c /= 2 {
			contexts = append(contexts, c)
		}
		contexts = append(contexts, min(minContext, trained))
	}
	smallest := contexts[len(contexts)-1]
	for _, c := range contexts { // everything resident, without shrinking below a useful context
		if s.experts != nil && kvSize(s.h, s.b.KVType, c, s.b.Sessions).Bytes() > s.b.DeviceBytes/4 {
			continue // experts want the room
		}
		if n := s.chunkFor(c, s.b.DeviceBytes-s.resident(), s.residentChunk()); n > 0 && (c >= 4096 || c == contexts[0]) {
			return c, n, nil
		}
	}
	room := s.b.DeviceBytes - s.ring()
	for _, c := range contexts {
		kv := kvSize(s.h, s.b.KVType, c, s.b.Sessions)
		if kv.Bytes() > s.b.DeviceBytes/4 && c != smallest {
			continue
		}
		if n := s.chunkFor(c, room, streamChunk); n > 0 {
			return c, n, nil
		}
	}
	return 0, 0, s.tooSmall(smallest)
}

// residentChunk is the most rows of a step when all is resident: more where each step decodes all weights.
func (s *sizing) residentChunk() int {
	if s.b.Matrices || s.experts != nil {
		return streamChunk
	}
	return maxChunk
}

// worth reports whether the scratch of steps of n rows is worth its VRAM at context c: it takes an eighth of the budget at most; or a
// quarter, where n/2 rows would leave hardly more VRAM to weights, and a prompt's weights would cross the link twice as often.
func (s *sizing) worth(c, n int) bool {
	bytes := s.scratch(c, min(n, c)).Bytes
	if bytes <= s.b.DeviceBytes/8 {
		return true
	}
	streamed := s.resident() - s.b.DeviceBytes
	return s.experts == nil && bytes <= s.b.DeviceBytes/4 && bytes-s.scratch(c, min(n/2, c)).Bytes <= streamed/hardly
}

// chunkFor returns the largest chunk up to most whose fixed part fits room at context
// c, or 0.
func (s *sizing) chunkFor(c int, room int64, most int) int {
	if s.b.Chunk > 0 {
		if s.fixed(c, min(s.b.Chunk, c)) <= min(room, s.local) {
			return min(s.b.Chunk, c)
		}
		return 0
	}
	for n := most; n >= minChunk; n /= 2 {
		if n > minChunk && n/2 >= c { // as good as half of it
			continue
		}
		if (n == minChunk || s.worth(c, n)) && s.fixed(c, min(n, c)) <= min(room, s.local) {
			return min(n, c)
		}
	}
	return 0
}

func (s *sizing) tooSmall(ctx int) error {
	chunk := minChunk
	if s.b.Chunk > 0 {
		chunk = s.b.Chunk
	}
	fixed := s.fixed(ctx, min(chunk, ctx))
	least := min(s.ring(), s.resident()) + fixed
	if least <= s.b.DeviceBytes && fixed > s.local { // in place there may be room for units alone
		return &BudgetError{What: fmt.Sprintf("scratch and a KV cache of %d tokens", ctx), Tier: VRAM, Need: fixed, Have: s.local, Remedy: "a smaller --ctx, or a larger --vram"}
	}
	e := &BudgetError{What: fmt.Sprintf("two units of %s, scratch and a KV cache of %d tokens", mib(s.largest), ctx), Tier: VRAM, Need: least, Have: s.b.DeviceBytes}
	e.Remedy = fmt.Sprintf("--vram %dMiB fits", (least+(1<<20)-1)>>20)
	if s.b.ContextLength > minContext {
		e.Remedy += ", or a smaller --ctx"
	}
	return e
}

func logitRows(h *arch.Hyper, chunk int) int {
	return min(chunk, max(1, 32<<20/(4*h.VocabSize)))
}

// build makes the plan for a context and chunk known to fit: it gives every unit its tier.
func (s *sizing) build(ctx, chunk int) (*Plan, error) {
	p := &Plan{
		ContextLength: ctx, Chunk: chunk, LogitRows: logitRows(s.h, chunk), Sessions: s.b.Sessions,
		KV: kvSize(s.h, s.b.KVType, ctx, s.b.Sessions), Scratch: s.scratch(ctx, chunk), Totals: Totals{DeviceBudget: s.b.DeviceBytes}, made: s.b,
		InPlace: s.b.InPlace,
	}
	streamed, ring := s.streamed(s.b.DeviceBytes - s.fixed(ctx, chunk))
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
	p.Blocks = deal(chosen(p.Units, func(i int) bool { return !streamed[i] }), s.b.BlockBytes)
	p.Units = slices.Insert(p.Units, len(s.units)-s.heads, Unit{Unit: s.norm, Block: len(p.Blocks)})
	p.Blocks = append(p.Blocks, roundUp(s.norm.Bytes, granule))
	s.stage(p)
	p.setHost(chosen(p.Units, func(i int) bool { return p.Units[i].Tier == Disk }))
	p.DeviceBytes = sum(p.Blocks) + sum(p.Ring) + p.KV.Bytes() + p.Scratch.Bytes + s.experts.SlotBytes()
	if p.DeviceBytes > s.b.DeviceBytes {
		return nil, s.tooSmall(ctx)
	}
	if s.experts != nil {
		s.cache(p)
	}
	s.keepEmbedding(p)
	return p, nil
}

// cache gives experts the VRAM and the RAM that are left, and adds each layer's unit of experts to the plan.
func (s *sizing) cache(p *Plan) {
	x := s.experts.clone()
	least := x.SlotBytes()
	x.grow(s.b.DeviceBytes - p.DeviceBytes)
	p.DeviceBytes += x.SlotBytes() - least
	p.HostBytes += x.keep(s.m, s.b.HostBytes-p.HostBytes, ReadBytes)
	p.Experts = x
	for i := 0; i < len(p.Units); i++ {
		last := i+1 == len(p.Units) || p.Units[i+1].Kind != pack.Layer || p.Units[i+1].Layer != p.Units[i].Layer
		if p.Units[i].Kind != pack.Layer || !last {
			continue
		}
		if u, ok := cachedUnit(s.m, p.Units[i].Layer); ok {
			i++
			p.Units = slices.Insert(p.Units, i, u)
		}
	}
	p.addTraffic(1)
}

// keepEmbedding keeps token_embd in RAM, unless units of the host tier need the room: a step reads whole units, but only a few
// rows of token_embd.
func (s *sizing) keepEmbedding(p *Plan) {
	left := s.b.HostBytes - p.HostBytes
	if p.InPlace {
		left = s.b.DeviceBytes - p.DeviceBytes
	}
	if p.DiskBytes > 0 || s.embd > left {
		return
	}
	if p.EmbedBytes = s.embd; !p.InPlace {
		p.HostBytes += s.embd
	}
}

// streamed chooses which units are streamed, as few bytes as room allows beside the
// ring, spread as the budget says; nil: not even all of them.
func (s *sizing) streamed(room int64) (streamed []bool, ring []int64) {
	sizes := make([]int64, len(s.units))
	for i, u := range s.units {
		sizes[i] = u.Bytes
	}
	// A ring of the size we want comes before residents, but not before running at all.
	for _, least := range []bool{false, true} {
		fits := func(streamed []bool) bool {
			ring = s.ringFor(streamed, least)
			return s.blocks(streamed)+sum(ring) <= room
		}
		if streamed = fewest(sizes, s.b.Spread, fits); streamed != nil {
			fits(streamed) // sets the ring
			break
		}
	}
	return streamed, ring
}

// ringFor is the sizes of the ring's blocks for the streamed units. With least it holds the largest unit twice, no more.
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

// Sixteen direct reads of 8 MiB fill a disk's queue; the other slots of staging memory
// are uploaded meanwhile.
const (
	ReadDepth    = 16      // reads under way
	ReadBytes    = 8 << 20 // bytes of a read, at most
	stagingSlots = 24      // slots of staging memory, where the RAM suffices
	leastSlots   = 4       // slots of staging memory at least
)

// stage sizes the staging memory: pieces no larger than what is read at a time, fewer
// of them where RAM is short.
func (s *sizing) stage(p *Plan) {
	var longest int64
	for i := range p.Units {
		for _, e := range p.Units[i].Extents {
			longest = max(longest, e.Bytes)
		}
	}
	piece, most := int64(ReadBytes), int64(stagingSlots)
	if s.b.StagingBytes > 0 {
		piece = roundUp(max(s.b.StagingBytes, 2*ReadAlign), ReadAlign)
	}
	slot := min(piece, roundUp(longest+ReadAlign, ReadAlign)) // the bytes may begin and end within a block
	slots := min(most, max(leastSlots, s.b.HostBytes/8/slot))
	if s.b.InPlace {
		slots = ReadDepth
	}
	if s.b.StagingSlots > 0 {
		slots = int64(s.b.StagingSlots)
	}
	p.Staging = Staging{Slots: int(slots), SlotBytes: slot}
	if !s.b.InPlace {
		p.HostBytes = roundUp(slots*slot, granule)
	}
}

// setHost gives each streamed unit of flow a tier: host as far as the RAM budget goes, disk for the others, spread evenly.
func (p *Plan) setHost(flow []*Unit) {
	sizes := make([]int64, len(flow))
	for i, u := range flow {
		sizes[i] = u.Bytes
	}
	var blocks []int64
	fits := func(disk []bool) bool {
		var host []*Unit
		for i, u := range flow {
			if u.Tier = Disk; !disk[i] {
				u.Tier = Host
				host = append(host, u)
			}
		}
		blocks = placeHost(host, len(p.HostBlocks))
		return sum(blocks) <= p.made.HostBytes-p.HostBytes || len(blocks) == 0
	}
	disk := fewest(sizes, Even, fits)
	fits(disk)
	p.HostBlocks = append(p.HostBlocks, blocks...)
	p.HostBytes += sum(blocks)
	p.StreamedBytes += sum(sizes)
	p.DiskBytes += markedBytes(sizes, disk)
}
