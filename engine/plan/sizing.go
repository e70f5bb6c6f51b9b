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
	heads   int   // how many of the units, the last ones, are pieces of the head
	largest int64 // bytes of the largest unit
}

const (
	minContext   = 512
	maxChunk     = 512  // rows of a step when all is resident
	streamChunk  = 2048 // with streamed units, which cross the link once a step
	minChunk     = 8
	ringReserve  = 256 << 20 // of the ring beyond the two units in it, see ringBytes
	ringFraction = 16        // of the VRAM budget, at most, for that
)

// fixed is what must be in VRAM whatever is streamed: scratch, KV cache, final norm.
func (s *sizing) fixed(ctx, chunk int) int64 {
	kv := kvSize(s.h, s.b.KVElement, ctx, s.b.Sessions)
	return kv.Bytes() + s.scratch(ctx, chunk).Bytes + roundUp(s.norm.Bytes, granule)
}

func (s *sizing) scratch(ctx, chunk int) Scratch {
	return scratchSize(s.h, chunk, logitRows(s.h, chunk), kvPages(ctx)*s.b.Sessions, s.b.Sessions, s.embdRow)
}

// ring is the least that streaming takes: two of the largest unit.
func (s *sizing) ring() int64 { return sum(ringBlocks(2*s.largest, s.largest)) }

// ringBytes is the ring for units of at most largest bytes: one that is read, one that
// comes, and as much again as the link brings while a token ends and the next begins.
func (s *sizing) ringBytes(largest int64) int64 {
	if s.b.RingBytes > 0 {
		return max(s.b.RingBytes, 2*largest)
	}
	return 2*largest + min(ringReserve, s.b.DeviceBytes/ringFraction)
}

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
		if n := s.chunkFor(c, s.b.DeviceBytes-s.resident(), maxChunk); n > 0 && (c >= 4096 || c == contexts[0]) {
			return c, n, nil
		}
	}
	room := s.b.DeviceBytes - s.ring()
	for _, c := range contexts {
		kv := kvSize(s.h, s.b.KVElement, c, s.b.Sessions)
		if kv.Bytes() > s.b.DeviceBytes/4 && c != smallest {
			continue
		}
		if n := s.chunkFor(c, room, streamChunk); n > 0 {
			return c, n, nil
		}
	}
	return 0, 0, s.tooSmall(smallest)
}

// chunkFor returns the largest chunk up to most whose fixed part fits room at context
// c, or 0.
func (s *sizing) chunkFor(c int, room int64, most int) int {
	if s.b.Chunk > 0 {
		if s.fixed(c, min(s.b.Chunk, c)) <= room {
			return min(s.b.Chunk, c)
		}
		return 0
	}
	for n := most; n >= minChunk; n /= 2 {
		if n/2 >= c { // as good as half of it
			continue
		}
		small := n == minChunk || s.scratch(c, min(n, c)).Bytes <= s.b.DeviceBytes/8
		if small && s.fixed(c, min(n, c)) <= room {
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
	streamed := s.streamed(p, s.b.DeviceBytes-s.fixed(ctx, chunk))
	layers := len(s.units) - s.heads
	p.Units = append([]Unit(nil), s.units[:layers]...)
	p.Units = append(p.Units, Unit{Unit: s.norm})
	p.Units = append(p.Units, s.units[layers:]...)
	s.setTiers(p, streamed)
	p.Blocks = place(p.Units, VRAM)
	p.DeviceBytes = sum(p.Blocks) + sum(p.Ring) + p.KV.Bytes() + p.Scratch.Bytes
	if p.DeviceBytes > s.b.DeviceBytes {
		return nil, s.tooSmall(ctx)
	}
	return p, nil
}

// streamed chooses how many units are streamed, the fewest for which room holds the
// others and the ring, and sets the ring. A ring that would force all to be streamed
// shrinks to the least.
func (s *sizing) streamed(p *Plan, room int64) int {
	if s.resident() <= room {
		return 0
	}
	n := len(s.units)
	for k := 1; k <= n; k++ {
		largest, all := s.sizeStreamed(k)
		in := func(i int) bool { return !spread(i, k, n) }
		for _, bytes := range []int64{max(2*largest, min(s.ringBytes(largest), all)), 2 * largest} {
			p.Ring = ringBlocks(bytes, largest)
			if sum(blocksOf(s.units, in))+sum(p.Ring) <= room {
				return k
			}
			if k < n {
				break // more streamed units come before a smaller ring
			}
		}
	}
	return n
}

// sizeStreamed is the size of the largest unit when k are streamed, and of all of them.
func (s *sizing) sizeStreamed(k int) (largest, all int64) {
	for i, u := range s.units {
		if spread(i, k, len(s.units)) {
			largest = max(largest, u.Bytes)
			all += roundUp(u.Bytes, 256)
		}
	}
	return largest, all
}

// spread reports whether item i of n is one of k chosen evenly among them.
func spread(i, k, n int) bool { return (i+1)*k/n > i*k/n }

// Eight direct reads of 16 MiB fill a slow disk's queue and a fast one's (design §10);
// the other slots are being uploaded meanwhile.
const (
	ReadDepth    = 8
	stagingSlots = 12
	leastSlots   = 4
	stagingPiece = 16 << 20
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
	slot := min(stagingPiece, roundUp(longest+ReadAlign, ReadAlign)) // the bytes may begin and end within a block
	slots := min(stagingSlots, max(leastSlots, s.b.HostBytes/8/slot))
	p.Staging = Staging{Slots: int(slots), SlotBytes: slot}
	p.HostBytes = roundUp(slots*slot, granule)
}

// setTiers marks the streamed units, those first that fit into the RAM budget as
// host tier, spread among the disk units as the streamed are among the resident.
func (s *sizing) setTiers(p *Plan, streamed int) {
	s.stage(p)
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
		for j, u := range flow {
			u.Tier = Disk
			if spread(j, host, len(flow)) {
				u.Tier = Host
			}
		}
		if p.HostBlocks = place(p.Units, Host); sum(p.HostBlocks) <= room {
			break
		}
	}
	if host == 0 {
		p.HostBlocks = nil
	}
	p.HostBytes += sum(p.HostBlocks)
	for _, u := range flow {
		if host == 0 {
			u.Tier = Disk
		}
		if u.Tier == Disk {
			p.DiskBytes += u.Bytes
		}
		p.StreamedBytes += u.Bytes
	}
}
