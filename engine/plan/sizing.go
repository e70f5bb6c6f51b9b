package plan

import (
	"fmt"

	"leat/decompose/pack"
	"leat/engine/arch"
)

// sizing holds what the choice of context, chunk and residency looks at.
type sizing struct {
	h       *arch.Hyper
	b       Budget
	units   []Unit
	norm    pack.Unit
	embdRow int64 // bytes of one row of token_embd
	all     int64 // bytes of all movable units
	largest int64 // bytes of the largest
}

const (
	minContext = 512
	maxChunk   = 512
	minChunk   = 8
)

// fixed is what must be in VRAM whatever is streamed: scratch, KV cache, final norm.
func (s *sizing) fixed(ctx, chunk int) int64 {
	kv := kvSize(s.h, s.b.KVElement, ctx, s.b.Sessions)
	return kv.Bytes() + s.scratch(ctx, chunk).Bytes + roundUp(s.norm.Bytes, granule)
}

func (s *sizing) scratch(ctx, chunk int) Scratch {
	return scratchSize(s.h, chunk, logitRows(s.h, chunk), kvPages(ctx)*s.b.Sessions, s.b.Sessions, s.embdRow)
}

func (s *sizing) ring() int64 { return 2 * roundUp(s.largest, granule) }

// resident is the VRAM for all units, ring excluded.
func (s *sizing) resident() int64 { return sum(blocksOf(s.units, nil)) }

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
		if n := s.chunkFor(c, s.b.DeviceBytes-s.resident()); n > 0 && (c >= 4096 || c == contexts[0]) {
			return c, n, nil
		}
	}
	room := s.b.DeviceBytes - s.ring()
	for _, c := range contexts {
		kv := kvSize(s.h, s.b.KVElement, c, s.b.Sessions)
		if kv.Bytes() > s.b.DeviceBytes/4 && c != smallest {
			continue
		}
		if n := s.chunkFor(c, room); n > 0 {
			return c, n, nil
		}
	}
	return 0, 0, s.tooSmall(smallest)
}

// chunkFor returns the largest chunk whose fixed part fits room at context c, or 0.
func (s *sizing) chunkFor(c int, room int64) int {
	if s.b.Chunk > 0 {
		if s.fixed(c, min(s.b.Chunk, c)) <= room {
			return min(s.b.Chunk, c)
		}
		return 0
	}
	for n := maxChunk; n >= minChunk; n /= 2 {
		small := n == minChunk || s.scratch(c, n).Bytes <= s.b.DeviceBytes/8
		if small && s.fixed(c, n) <= room {
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
	least := min(s.ring(), s.resident()) + s.fixed(ctx, min(chunk, ctx))
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

// build settles every unit's tier for a context and chunk known to fit.
func (s *sizing) build(ctx, chunk int) (*Plan, error) {
	p := &Plan{
		ContextLength: ctx, Chunk: chunk, LogitRows: logitRows(s.h, chunk), Sessions: s.b.Sessions,
		KV: kvSize(s.h, s.b.KVElement, ctx, s.b.Sessions), Scratch: s.scratch(ctx, chunk), DeviceBudget: s.b.DeviceBytes,
	}
	room := s.b.DeviceBytes - s.fixed(ctx, chunk)
	n := len(s.units)
	streamed := 0
	if s.resident() > room {
		p.Slots = 2
		for streamed = 1; streamed < n; streamed++ {
			in := func(i int) bool { return !spread(i, streamed, n) }
			if sum(blocksOf(s.units, in))+2*s.slot(streamed) <= room {
				break
			}
		}
		p.SlotBytes = s.slot(streamed)
	}
	p.Units = append([]Unit(nil), s.units[:s.h.BlockCount]...)
	p.Units = append(p.Units, Unit{Unit: s.norm})
	p.Units = append(p.Units, s.units[s.h.BlockCount:]...)
	s.setTiers(p, streamed)
	p.Blocks = place(p.Units)
	p.DeviceBytes = sum(p.Blocks) + int64(p.Slots)*p.SlotBytes + p.KV.Bytes() + p.Scratch.Bytes
	if p.DeviceBytes > s.b.DeviceBytes {
		return nil, s.tooSmall(ctx)
	}
	return p, nil
}

// slot is the ring slot that holds any of the streamed units.
func (s *sizing) slot(streamed int) int64 {
	var largest int64
	for i, u := range s.units {
		if spread(i, streamed, len(s.units)) {
			largest = max(largest, u.Bytes)
		}
	}
	return roundUp(largest, granule)
}

// spread reports whether item i of n is one of k chosen evenly among them.
func spread(i, k, n int) bool { return (i+1)*k/n > i*k/n }

const (
	stagingSlots = 4
	stagingPiece = 16 << 20 // one submit per piece keeps 47.9 of 49 GB/s (design §10)
)

// setTiers marks the streamed units, those first that fit into the RAM budget as
// host tier, spread among the disk units as the streamed are among the resident.
func (s *sizing) setTiers(p *Plan, streamed int) {
	piece := roundUp(min(stagingPiece, s.largest), 4096)
	p.Staging = Staging{Slots: stagingSlots, SlotBytes: piece}
	p.HostBytes = int64(stagingSlots) * piece
	var flow []*Unit
	i := 0
	for k := range p.Units {
		u := &p.Units[k]
		if u.Kind == pack.Norm {
			continue
		}
		if spread(i, streamed, len(s.units)) {
			flow = append(flow, u)
		}
		i++
	}
	room := s.b.HostBytes - p.HostBytes
	host := len(flow)
	for ; host > 0; host-- {
		var need int64
		for j, u := range flow {
			if spread(j, host, len(flow)) {
				need += roundUp(u.Bytes, granule)
			}
		}
		if need <= room {
			p.HostBytes += need
			break
		}
	}
	for j, u := range flow {
		u.Tier = Disk
		if spread(j, host, len(flow)) {
			u.Tier = Host
		} else {
			p.DiskBytes += u.Bytes
		}
		p.StreamedBytes += u.Bytes
	}
}
