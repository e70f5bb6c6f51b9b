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
	budget  Budget       // completed by defaults
	kept    []arch.Value // values that logit rows go on with in the last layer, see [arch.KeepLogitRows]
	experts *Experts     // the fewest slots that experts can share; nil: no experts share slots
	units   []Unit       // the units whose tier is to be chosen, in order of execution
	norm    pack.Unit    // the final norm, always resident
	embdRow int64        // bytes of one row of token_embd
	embd    int64        // bytes of token_embd
	heads   int          // number of pieces of the head, the last of units
	largest int64        // bytes of the largest of units
	local   int64        // most bytes of what fixed counts, which needs the device's own memory; less than budget.DeviceBytes only if in place
}

const (
	minContext   = 512       // fewest tokens that a session must hold, unless the budget says how many or the model was trained on fewer
	maxChunk     = 512       // most rows of a step when all is resident, see residentChunk
	streamChunk  = 2048      // most rows of a step with streamed units, which cross the link once a step
	minChunk     = 8         // most rows of a step where VRAM is short
	ringReserve  = 256 << 20 // bytes of the ring beyond its two units, see ringBytes
	ringFraction = 16        // ringReserve is at most a 16th of the VRAM budget
	negligible   = 64        // streaming a 64th more of the weights costs hardly any time
)

// fixed is the VRAM that is needed whatever is streamed: for scratch, KV cache, the fewest slots of experts, and the final norm,
// which has a block to itself.
func (s *sizing) fixed(ctx, chunk int) int64 {
	return s.kv(ctx).Bytes() + s.scratch(ctx, chunk).Bytes + roundUp(s.norm.Bytes, granule) + s.experts.SlotBytes()
}

// leastRing is the VRAM of the smallest ring: it holds the largest unit twice.
func (s *sizing) leastRing() int64 { return sum(ringBlocks(2*s.largest, s.largest)) }

// ringBytes is the VRAM of the ring that units of at most largest bytes should have: for one that kernels read, one that is uploaded, and
// what the link uploads between the end of a step and the first kernel of the next. If the budget says how large the ring is, it is
// as large, but holds two units.
func (s *sizing) ringBytes(largest int64) int64 {
	if s.budget.RingBytes > 0 {
		return max(s.budget.RingBytes, 2*largest)
	}
	if s.budget.InPlace { // disk reads go to the ring directly
		return 2*largest + min(ringReserve+ReadDepth*ReadBytes, 2*s.budget.DeviceBytes/ringFraction)
	}
	return 2*largest + min(ringReserve, s.budget.DeviceBytes/ringFraction)
}

// residentBytes is the VRAM that all units take if none is streamed. To find out, it gives every unit a block and an offset, which count for nothing until
// build gives units their final places.
func (s *sizing) residentBytes() int64 { return s.packResident(make([]bool, len(s.units))) }

// packResident gives each unit that is not marked as streamed a block and an offset, and returns the VRAM that the blocks take.
func (s *sizing) packResident(streamed []bool) int64 {
	return sum(placeResident(selectUnits(s.units, func(i int) bool { return !streamed[i] }), s.budget.BlockBytes))
}

// choose chooses the context's length and the chunk. If the budget says how long the context is, choose only tries that; if not, the trained length, half of it,
// and so on. The first choice is the longest context with which all units are resident, if it is 4096 or more or the first that was tried. If there is
// none, units are streamed, and it is the longest whose KV cache takes at most a quarter of the budget's DeviceBytes. The smallest context that is tried
// may take more than a quarter, and so may any with which all units are resident, unless experts share slots.
func (s *sizing) choose() (ctx, chunk int, err error) {
	trained := s.h.ContextLength
	contexts := []int{s.budget.ContextLength}
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

// residentChunk is the most rows of a step when all units are resident. They are more where each step decodes all weights to float16, or uploads experts.
func (s *sizing) residentChunk() int {
	if s.budget.Matrices || s.experts != nil {
		return streamChunk
	}
	return maxChunk
}

// worthScratch reports whether steps of up to rows rows are worth the VRAM of their scratch. It may take an eighth of the budget; or a
// quarter, where half the rows would leave hardly more VRAM to weights, and a prompt would upload streamed weights twice as often. Where experts
// share slots, it never takes more than an eighth.
func (s *sizing) worthScratch(ctx, rows int) bool {
	bytes := s.scratch(ctx, min(rows, ctx)).Bytes
	if bytes <= s.budget.DeviceBytes/8 {
		return true
	}
	streamed := s.residentBytes() - s.budget.DeviceBytes
	return s.experts == nil && bytes <= s.budget.DeviceBytes/4 && bytes-s.scratch(ctx, min(rows/2, ctx)).Bytes <= streamed/negligible
}

// chunkFor returns the largest chunk up to most whose scratch is worth its VRAM and with which what [sizing.fixed] counts fits room bytes of VRAM; 0: none
// does. If the budget says how large the chunk is, chunkFor only tries that. A chunk is at most ctx.
func (s *sizing) chunkFor(ctx int, room int64, most int) int {
	room = min(room, s.local)
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
	if s.budget.Chunk > 0 {
		chunk = s.budget.Chunk
	}
	fixed := s.fixed(ctx, min(chunk, ctx))
	least := min(s.leastRing(), s.residentBytes()) + fixed
	if least <= s.budget.DeviceBytes && fixed > s.local { // in place there may be room for units alone
		return &BudgetError{What: fmt.Sprintf("scratch and a KV cache of %d tokens", ctx), Tier: VRAM, Need: fixed, Have: s.local, Remedy: "a smaller --ctx, or a larger --vram"}
	}
	e := &BudgetError{What: fmt.Sprintf("two units of %s, scratch and a KV cache of %d tokens", mib(s.largest), ctx), Tier: VRAM, Need: least, Have: s.budget.DeviceBytes}
	e.Remedy = fmt.Sprintf("--vram %dMiB fits", (least+(1<<20)-1)>>20)
	if s.budget.ContextLength > minContext {
		e.Remedy += ", or a smaller --ctx"
	}
	return e
}
