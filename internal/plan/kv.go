package plan

import (
	"leat/gguf"
	"leat/shaders"
)

// PagePositions is how many positions of a session one page of the KV cache holds.
const PagePositions = 32

// KV is the layout of the paged KV cache, and the size of the states that recurrent layers have instead of a cache. A page holds PagePositions positions of
// every layer with a cache, layer by layer K (Hkv, PagePositions, Dk) then V (Hkv, PagePositions, Dv), as shaders.FlashAttnArgs says. Blocks has the
// number of pages of each allocation. A session has pages for its whole context, and two states.
type KV struct {
	Type       gguf.Type // type of keys and values
	RowBytes   int64     // bytes of one head's key and value at one position
	LayerBytes int64     // bytes of one layer's rows in a page
	PageBytes  int64     // bytes of a page
	Pages      int       // pages of all sessions
	Blocks     []int     // number of pages in each allocation
	StateBytes int64     // bytes of one state of a session, all recurrent layers together; 0: no layer has a state
	States     int       // number of states, two for each session: before a step and after it; 0: no layer has a state
}

// kvPages is the number of pages that hold ctx positions of one session.
func kvPages(ctx int) int { return (ctx + PagePositions - 1) / PagePositions }

// kv lays out the KV cache for sessions of ctx tokens.
func (s *sizing) kv(ctx int) KV {
	h, t := s.h, s.budget.KVType
	k := KV{Type: t, RowBytes: shaders.KVRowBytes(t, h.KeyLength) + shaders.KVRowBytes(t, h.ValueLength), Pages: kvPages(ctx) * s.budget.Sessions}
	k.LayerBytes = roundUp(int64(h.HeadCountKV)*PagePositions*k.RowBytes, 256)
	k.PageBytes = k.LayerBytes * int64(max(1, h.CacheLayer(h.BlockCount)))
	if k.StateBytes = roundUp(h.StateBytes(), granule); k.StateBytes > 0 {
		k.States = 2 * s.budget.Sessions
	}
	perBlock := int(max(1, maxBlock/k.PageBytes))
	for left := k.Pages; left > 0; left -= perBlock {
		k.Blocks = append(k.Blocks, min(left, perBlock))
	}
	return k
}

// BlockBytes is the size of an allocation of n pages.
func (k KV) BlockBytes(n int) int64 { return roundUp(int64(n)*k.PageBytes, granule) }

// Bytes is the VRAM that the cache and the states take.
func (k KV) Bytes() (t int64) {
	for _, n := range k.Blocks {
		t += k.BlockBytes(n)
	}
	return t + int64(k.States)*k.StateBytes
}
