package plan

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// sizing chooses the context's length, the chunk, and which units are resident.
type sizing struct {
	h       *arch.Hyper  // the model's hyperparameters
	m       *pack.Model  // the model's tensors
	budget  Budget       // the user's budget, with defaults filled in
	kept    []arch.Value // values that the last layer keeps for rows whose logits are needed, see [arch.KeepLogitRows]
	experts *Experts     // the fewest slots that experts can share; nil: no experts share slots
	units   []Unit       // the units whose tier is to be chosen, in order of execution
	outer   []Unit       // units outside the layers and the head, always resident
	tables  []Table      // the model's tables of tokens
	grids   int64        // bytes of the grids of the weights' types; 0: none has one
	heads   int          // number of pieces of the head, the last of units
	largest int64        // bytes of the largest of units: the smallest ring holds it twice
	local   int64        // the device's own memory, which fixed must fit; less than budget.DeviceBytes only if in place
}

const (
	minContext   = 512       // fewest tokens that a session must hold, unless the budget sets the number or the model was trained on fewer
	maxChunk     = 512       // most rows of a step when all is resident, see residentChunk
	streamChunk  = 2048      // most rows of a step with streamed units, which cross the link once a step
	minChunk     = 8         // most rows of a step if VRAM is short
	ringReserve  = 256 << 20 // bytes of the ring beyond its two units, see ringBytes
	ringFraction = 16        // ringReserve is at most a 16th of the VRAM budget
	negligible   = 64        // streaming a 64th more of the weights costs hardly any time
)

// fixed is the VRAM that is needed for any choice of streamed units: for scratch, KV cache, the fewest slots of experts, and the units
// outside the layers and the head, which have a block to themselves.
func (s *sizing) fixed(ctx, chunk int) int64 {
	return s.kv(ctx).Bytes() + s.scratch(ctx, chunk).Bytes + s.outerBytes() + s.experts.SlotBytes()
}

// outerBytes is the VRAM of the units outside the layers and the head.
func (s *sizing) outerBytes() int64 {
	n := int64(0)
	for i := range s.outer {
		n += roundUp(s.outer[i].Bytes, 256)
	}
	return roundUp(n, granule)
}

// leastRing is the VRAM of the smallest ring: it holds the largest unit twice.
func (s *sizing) leastRing() int64 { return sum(ringBlocks(2*s.largest, s.largest)) }

// ringBytes is the VRAM that the ring should have for units of at most largest bytes: for a unit that kernels read, a unit that is uploaded, and
// the bytes that the link uploads between the end of a step and the first kernel of the next. Budget.RingBytes replaces this size, but the ring
// always holds two units.
func (s *sizing) ringBytes(largest int64) int64 {
	if s.budget.RingBytes > 0 {
		return max(s.budget.RingBytes, 2*largest)
	}
	if s.budget.InPlace { // disk reads go to the ring directly
		return 2*largest + min(ringReserve+ReadDepth*ReadBytes, 2*s.budget.DeviceBytes/ringFraction)
	}
	return 2*largest + min(ringReserve, s.budget.DeviceBytes/ringFraction)
}

// residentBytes is the VRAM that all units take if none is streamed. It computes that by giving every unit a block and an offset, which build overwrites
// with the units' final places.
func (s *sizing) residentBytes() int64 { return s.packResident(make([]bool, len(s.units))) }

// packResident gives each unit that is not marked as streamed a block and an offset, and returns the VRAM that the blocks take.
func (s *sizing) packResident(streamed []bool) int64 {
	return sum(placeResident(selectUnits(s.units, func(i int) bool { return !streamed[i] }), s.budget.BlockBytes))
}

// choose chooses the context's length and the chunk. It tries the context of the budget or, if the budget has none, [arch.LongestContext], half of it, and so
// on. It prefers the longest context with which all units are resident, if that is 4096 or more or the first one tried. Otherwise units are streamed, and it
// takes the longest context whose KV cache has at most a quarter of the VRAM budget; the smallest one may have more. The quarter also limits the first
// choice if experts share slots.
func (s *sizing) choose() (ctx, chunk int, err error) {
	trained := arch.LongestContext(s.h)
	contexts := []int{s.budget.ContextLength}
	if s.h.Encoder && s.budget.Chunk > 0 { // a text is one step
		trained = min(trained, s.budget.Chunk)
		contexts[0] = min(contexts[0], s.budget.Chunk)
	}
	if s.budget.ContextLength == 0 {
		contexts = nil
		for c := trained; c > minContext; c /= 2 {
			contexts = append(contexts, c)
		}
		contexts = append(contexts, min(minContext, trained))
	}
	smallest := contexts[len(contexts)-1]
	for _, c := range contexts { // everything resident, without shrinking below a useful context
		if s.experts != nil && s.kv(c).Bytes() > s.budget.DeviceBytes/4 {
			continue // experts need the VRAM more
		}
		if n := s.chunkFor(c, s.budget.DeviceBytes-s.residentBytes(), s.residentChunk()); n > 0 && (c >= 4096 || c == contexts[0]) {
			return c, n, nil
		}
	}
	room := s.budget.DeviceBytes - s.leastRing()
	for _, c := range contexts {
		if s.kv(c).Bytes() > s.budget.DeviceBytes/4 && c != smallest {
			continue
		}
		if n := s.chunkFor(c, room, streamChunk); n > 0 {
			return c, n, nil
		}
	}
	return 0, 0, s.tooSmall(smallest)
}

// residentChunk is the most rows of a step when all units are resident. It is larger if each step decodes all weights to float16 or uploads experts, because
// that has a fixed cost for each step.
func (s *sizing) residentChunk() int {
	if s.budget.Matrices || s.experts != nil {
		return streamChunk
	}
	return maxChunk
}

// worthScratch reports whether steps of up to rows rows are worth the VRAM of their scratch. Scratch may take an eighth of the budget. It may take a
// quarter if steps of half the rows, which make a prompt upload streamed weights twice as often, would hardly reduce the streamed bytes. If experts
// share slots, the limit is always an eighth.
func (s *sizing) worthScratch(ctx, rows int) bool {
	bytes := s.scratch(ctx, min(rows, ctx)).Bytes
	if bytes <= s.budget.DeviceBytes/8 {
		return true
	}
	streamed := s.residentBytes() - s.budget.DeviceBytes
	return s.experts == nil && bytes <= s.budget.DeviceBytes/4 && bytes-s.scratch(ctx, min(rows/2, ctx)).Bytes <= streamed/negligible
}

// chunkFor returns the largest chunk, up to most, whose scratch is worth its VRAM and with which [sizing.fixed] fits room bytes of VRAM; 0: there is none. If
// the budget sets the chunk, chunkFor tries only that. A chunk is at most ctx. That of an encoder is ctx, as a text is one step.
func (s *sizing) chunkFor(ctx int, room int64, most int) int {
	room = min(room, s.local)
	if s.h.Encoder {
		if s.fixed(ctx, ctx) <= room {
			return ctx
		}
		return 0
	}
	if s.budget.Chunk > 0 {
		if s.fixed(ctx, min(s.budget.Chunk, ctx)) <= room {
			return min(s.budget.Chunk, ctx)
		}
		return 0
	}
	for n := most; n >= minChunk; n /= 2 {
		if n > minChunk && n/2 >= ctx { // half as many rows hold the whole context
			continue
		}
		if (n == minChunk || s.worthScratch(ctx, n)) && s.fixed(ctx, min(n, ctx)) <= room {
			return min(n, ctx)
		}
	}
	return 0
}

// tooSmall is the error for a budget that can't hold the model with a context of ctx tokens.
func (s *sizing) tooSmall(ctx int) error {
	chunk := minChunk
	switch {
	case s.h.Encoder:
		chunk = ctx
	case s.budget.Chunk > 0:
		chunk = s.budget.Chunk
	}
	fixed := s.fixed(ctx, min(chunk, ctx))
	least := min(s.leastRing(), s.residentBytes()) + fixed
	if least <= s.budget.DeviceBytes && fixed > s.local { // in place, the units may fit and fixed may not
		return &BudgetError{What: fmt.Sprintf("scratch and a KV cache of %d tokens", ctx), Tier: VRAM, Need: fixed, Have: s.local, Remedy: "a smaller --ctx, or a larger --vram"}
	}
	e := &BudgetError{What: fmt.Sprintf("two units of %s, scratch and a KV cache of %d tokens", mib(s.largest), ctx), Tier: VRAM, Need: least, Have: s.budget.DeviceBytes}
	e.Remedy = fmt.Sprintf("--vram %dMiB fits", (least+(1<<20)-1)>>20)
	if s.budget.ContextLength > minContext {
		e.Remedy += ", or a smaller --ctx"
	}
	return e
}
