package plan

import (
	"leat/gguf"
	"leat/internal/arch"
	"leat/shaders"
)

func sum(ns []int64) (t int64) {
	for _, n := range ns {
		t += n
	}
	return t
}

// placeHost gives units of the host tier their block and offset, and returns the
// blocks' sizes, counted on from first. A unit stays whole; a block closes where the
// next unit would pass maxBlock.
func placeHost(us []*Unit, first int) []int64 {
	var blocks []int64
	for _, u := range us {
		bytes := HostExtents(&u.Unit, nil)
		last := len(blocks) - 1
		if last < 0 || blocks[last]+bytes > maxBlock {
			blocks = append(blocks, 0)
			last++
		}
		u.Block, u.Off = first+last, blocks[last]
		blocks[last] += bytes
	}
	return rounded(blocks)
}

// rounded rounds the sizes of blocks up to the granule of allocations, in place.
func rounded(blocks []int64) []int64 {
	for i := range blocks {
		blocks[i] = roundUp(blocks[i], granule)
	}
	return blocks
}

// residentBlock is what a block of resident units holds: small enough to be given back
// when another program wants VRAM, large enough for a driver's own rounding.
const residentBlock = 256 << 20

// deal gives every unit its block and offset and returns the blocks' sizes. The next
// unit goes to the emptiest block, so that each block holds units from all over the
// model: what is left stays spread evenly when one is given back.
func deal(us []*Unit, blockBytes int64) []int64 {
	var total int64
	for _, u := range us {
		total += roundUp(u.Bytes, 256)
	}
	if total == 0 {
		return nil
	}
	blocks := make([]int64, min(int64(len(us)), (total+blockBytes-1)/blockBytes))
	emptiest := make([]int, len(blocks)) // a heap of indices
	for i := range emptiest {
		emptiest[i] = i
	}
	for _, u := range us {
		b, bytes := emptiest[0], roundUp(u.Bytes, 256)
		if blocks[b] > 0 && blocks[b]+bytes > maxBlock {
			blocks, b = append(blocks, 0), len(blocks)
			emptiest = append([]int{b}, emptiest...) // less than all others: still a heap
		}
		u.Block, u.Off = b, blocks[b]
		blocks[b] += bytes
		sink(emptiest, func(a, b int) bool { return blocks[a] < blocks[b] || blocks[a] == blocks[b] && a < b })
	}
	return rounded(blocks)
}

// sink moves a heap's first element down to its place.
func sink(heap []int, less func(a, b int) bool) {
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(heap) && less(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// chosen lists pointers to the units whose index in accepts.
func chosen(us []Unit, in func(i int) bool) []*Unit {
	var list []*Unit
	for i := range us {
		if in(i) {
			list = append(list, &us[i])
		}
	}
	return list
}

// ringBlocks is the sizes of the allocations that make up a ring of so many bytes. Each can hold the largest unit.
func ringBlocks(bytes, largest int64) []int64 {
	n := max(1, (bytes+maxBlock-1)/maxBlock)
	each := roundUp(max(bytes/n, largest), granule)
	blocks := make([]int64, n)
	for i := range blocks {
		blocks[i] = each
	}
	return blocks
}

// RingSize is the VRAM that streamed units pass through.
func (p *Plan) RingSize() int64 {
	return p.DeviceBytes - sum(p.Blocks) - p.KV.Bytes() - p.Scratch.Bytes - p.Experts.SlotBytes()
}

// PagePositions is how many positions of a session one page of the KV cache holds.
const PagePositions = 32

// KV is the paged cache: a page holds PagePositions positions of every layer, layer
// by layer K (Hkv, PagePositions, Dk) then V (Hkv, PagePositions, Dv), as shaders.FlashAttnArgs says.
type KV struct {
	Type       gguf.Type
	RowBytes   int64 // of one head's key and value at one position
	LayerBytes int64 // of one layer within a page
	PageBytes  int64
	Pages      int
	Blocks     []int // pages in each allocation
	StateBytes int64 // the state of a sequence's layers that have one in place of a cache; 0: there are none
	States     int   // two for each session: before a step and after it
}

func kvPages(ctx int) int { return (ctx + PagePositions - 1) / PagePositions }

func kvSize(h *arch.Hyper, t gguf.Type, ctx, sessions int) KV {
	k := KV{Type: t, RowBytes: shaders.KVRowBytes(t, h.KeyLength) + shaders.KVRowBytes(t, h.ValueLength), Pages: kvPages(ctx) * sessions}
	k.LayerBytes = roundUp(int64(h.HeadCountKV)*PagePositions*k.RowBytes, 256)
	k.PageBytes = k.LayerBytes * int64(max(1, h.CacheLayer(h.BlockCount)))
	if k.StateBytes = roundUp(h.StateBytes(), granule); k.StateBytes > 0 {
		k.States = 2 * sessions
	}
	perBlock := int(max(1, maxBlock/k.PageBytes))
	for left := k.Pages; left > 0; left -= perBlock {
		k.Blocks = append(k.Blocks, min(left, perBlock))
	}
	return k
}

// BlockBytes is the allocation that holds n pages.
func (k KV) BlockBytes(n int) int64 { return roundUp(int64(n)*k.PageBytes, granule) }

// Bytes is all the cache takes.
func (k KV) Bytes() (t int64) {
	for _, n := range k.Blocks {
		t += k.BlockBytes(n)
	}
	return t + int64(k.States)*k.StateBytes
}

// Region is a part of the scratch buffer.
type Region struct{ Off, Bytes int64 }

// Scratch lays out the buffer that a step's inputs, activations and logits share.
type Scratch struct {
	Inputs

	Values  [arch.NumValues]Region // activations, (N, width)
	Kept    [arch.NumValues]Region // the same once only rows that want logits are left, see [arch.KeepAsked]: those that go on are elsewhere, (LogitRows, width)
	Head    Region                 // (LogitRows, D) rows of X, normalised
	Logits  Region                 // (LogitRows, V)
	Argmax  Region                 // (LogitRows) uint32
	Tiles   Region                 // pairs of rows and experts, by expert; none: there are no experts
	Weights int64                  // of Halves, for the weights: two slices
	Halves  Region                 // where the kernels bring both sides of products of many rows into halves; none: they don't
	Q8      Region                 // the input of products of few rows as bytes, twice; none: they read floats
	Parts   Region                 // the parts of attention of few rows, and those of argmax
	Counts  Region                 // of the parts that have ended
	Bytes   int64
}

// Inputs are the regions that the host fills for every step.
type Inputs struct {
	IDs      Region // (N) uint32 0…N-1: rows of Embd
	Pos      Region // (N) uint32
	Seq      Region // (N) uint32 index into Pages' rows
	Pages    Region // (sessions, pages of a session) uint64 addresses
	States   Region // (sessions, 2) uint64 addresses of states, before the step and after it
	CosSin   Region // (N, Dr/2, 2)
	Embd     Region // (N) rows of token_embd in the file's type
	LogitIDs Region // (LogitRows) uint32 rows of X that want logits
	KeptPos  Region // (LogitRows) uint32, Pos of those rows, where no others are kept
	KeptSeq  Region // (LogitRows) uint32, Seq of them
	Table    Region // (L, 3, E) uint64 addresses of each expert's gate, up and down; none: there are no experts
	There    Region // the same of all that are in slots, each layer's behind [shaders.ThereHead] more; behind all (L) uint32, whether a step may go ahead with a layer
}

func scratchSize(h *arch.Hyper, kept []arch.Value, chunk, logits, pages, sessions int, embdRow, weights int64, few bool) Scratch {
	var s Scratch
	take := func(r *Region, bytes int64) {
		*r = Region{Off: s.Bytes, Bytes: roundUp(bytes, 256)}
		s.Bytes += r.Bytes
	}
	n, rows := int64(chunk), int64(logits)
	take(&s.IDs, 4*n)
	take(&s.Pos, 4*n)
	take(&s.Seq, 4*n)
	take(&s.Pages, 8*int64(pages))
	take(&s.States, 16*int64(sessions))
	take(&s.CosSin, 4*n*int64(h.Rope.Dim))
	take(&s.Embd, n*embdRow)
	take(&s.LogitIDs, 4*rows)
	take(&s.KeptPos, 4*rows)
	take(&s.KeptSeq, 4*rows)
	experts := int64(h.Experts.Count)
	take(&s.Table, 8*int64(h.BlockCount)*3*experts)
	if experts > 0 {
		take(&s.There, int64(h.BlockCount)*(8*(shaders.ThereHead+3*experts)+4))
	}
	for v := range s.Values {
		take(&s.Values[v], 4*n*int64(h.Width(arch.Value(v))))
	}
	s.Kept = s.Values
	for _, v := range kept {
		take(&s.Kept[v], 4*rows*int64(h.Width(v)))
	}
	take(&s.Head, 4*rows*int64(h.EmbeddingLength))
	take(&s.Logits, 4*rows*int64(h.VocabSize))
	take(&s.Argmax, 4*rows)
	if experts > 0 {
		take(&s.Tiles, shaders.TileBytes*int64(shaders.ExpertTiles(uint32(chunk*h.Experts.Used), uint32(experts), shaders.ExpertCols)))
	}
	if s.Weights = weights; weights > 0 {
		pairs := uint32(chunk * h.Experts.Used)
		take(&s.Halves, max(shaders.ScratchBytes(uint32(chunk), uint32(longestRow(h)), weights), shaders.ScratchBytes(pairs, uint32(h.Experts.FeedForwardLength), 0)))
	}
	parts, counts := shaders.ArgmaxPartBytes(uint32(logits), uint32(h.VocabSize)), 4*rows
	if few {
		rows := uint32(shaders.FewRows)
		if weights == 0 { // long steps go by bytes, too
			rows = max(rows, uint32(chunk))
		}
		pairs := rows * uint32(h.Experts.Used)
		take(&s.Q8, 2*max(shaders.Q8Size(rows, uint32(longestRow(h))), shaders.Q8Size(pairs, uint32(h.Experts.FeedForwardLength))))
		parts = max(parts, shaders.PartBytes(shaders.FewRows, uint32(h.HeadCount), shaders.MaxParts, uint32(h.ValueLength)))
		counts = max(counts, shaders.CounterBytes(shaders.FewRows, uint32(h.HeadCount)))
	}
	take(&s.Parts, parts)
	take(&s.Counts, counts)
	s.Bytes = roundUp(s.Bytes, granule)
	return s
}

// longestRow is the number of columns of the layers' widest matrix.
func longestRow(h *arch.Hyper) (n int) {
	for v := range arch.NumValues {
		n = max(n, h.PairWidth(arch.Value(v)))
	}
	return n
}
