package plan

import (
	"leat/gguf"
	"leat/shaders"
)

// PagePositions is how many positions of a session one page of the KV cache holds.
const PagePositions = 32

// KV is the layout of the paged KV cache, and of the states that recurrent layers have. A page holds PagePositions positions of every layer with a cache, layer
// by layer K (Hkv, PagePositions, Dk) then V (Hkv, PagePositions, Dv), as shaders.FlashAttnArgs says. Blocks has the number of pages of each
// allocation. A session has pages for its whole context, and two states.
type KV struct {
	Type       gguf.Type // type of keys and values
	Layers     []KVLayer // by layer of the model
	PageBytes  int64     // bytes of a page; 0: no layer has a cache, and there are no pages
	Pages      int       // pages of all sessions
	Blocks     []int     // number of pages in each allocation
	StateBytes int64     // bytes of one state of a session, all recurrent layers together; 0: no layer has a state
	States     int       // number of states, two for each session: before a step and after it; 0: no layer has a state
}

// KVLayer says where a layer's keys, values and state are.
type KVLayer struct {
	Off      int64    // offset in a page; of a layer that borrows keys and values, that of its lender
	RowBytes int64    // bytes of one head's key and value at one position; 0: the layer has no cache
	State    [2]int64 // offsets of the parts of its state in a session's state, see [arch.Hyper.StateParts]
}

// kvPages is the number of pages that hold ctx positions of one session.
func kvPages(ctx int) int { return (ctx + PagePositions - 1) / PagePositions }

// kv lays out the KV cache for sessions of ctx tokens.
func (s *sizing) kv(ctx int) KV {
	k := KV{Type: s.budget.KVType, Layers: make([]KVLayer, s.h.BlockCount)}
	for l := range k.Layers {
		shape, at := &s.h.Layers[l], &k.Layers[l]
		at.Off = k.PageBytes
		if shape.Cache {
			at.RowBytes = shaders.KVRowBytes(k.Type, shape.KeyLength) + shaders.KVRowBytes(k.Type, shape.ValueLength)
			k.PageBytes += roundUp(int64(shape.HeadCountKV)*PagePositions*at.RowBytes, 256)
		} else if shape.Borrows {
			at.Off, at.RowBytes = k.Layers[shape.Lender].Off, k.Layers[shape.Lender].RowBytes
		}
		for i, part := range s.h.StateParts(l) {
			at.State[i] = k.StateBytes
			k.StateBytes += part.Bytes()
		}
	}
	if k.StateBytes = roundUp(k.StateBytes, granule); k.StateBytes > 0 {
		k.States = 2 * s.budget.Sessions
	}
	if k.PageBytes == 0 {
		return k
	}
	k.Pages = kvPages(ctx) * s.budget.Sessions
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
