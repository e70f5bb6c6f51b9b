package shaders

import (
	"fmt"

	"leat/gguf"
)

// KVTypes are what a KV cache may be made of.
var KVTypes = []gguf.Type{gguf.F16, gguf.F32, gguf.Q8_0, gguf.Q4_0}

// kvBlock is the values of a block of a quantised cache, of which a row has whole ones; KVPage is what its pages hold a
// multiple of.
const (
	kvBlock = 32
	KVPage  = 4
)

// KVQuantised reports whether a cache of type t is made of blocks.
func KVQuantised(t gguf.Type) bool { return t == gguf.Q8_0 || t == gguf.Q4_0 }

// KVRowBytes is what a row of n values takes in a cache of type t: one head's key or value at one position. Scales of
// blocks take whole words, so that an odd one leaves 2 bytes over.
func KVRowBytes(t gguf.Type, n int) int64 {
	switch t {
	case gguf.F32:
		return 4 * int64(n)
	case gguf.Q8_0, gguf.Q4_0:
		bits := map[bool]int64{true: 8, false: 4}[t == gguf.Q8_0]
		return int64(n)*bits/8 + 4*((int64(n)+2*kvBlock-1)/(2*kvBlock))
	}
	return 2 * int64(n)
}

// HeadSizeError says that a cache of blocks can't hold a model's keys or values.
type HeadSizeError struct {
	Type gguf.Type
	Size int // values of a head
}

func (e *HeadSizeError) Error() string {
	return fmt.Sprintf("keep heads of %d values in a KV cache of %v: want a multiple of %d", e.Size, e.Type, kvBlock)
}

// Hint names what would do.
func (e *HeadSizeError) Hint() string { return "a KV cache of f16 takes any head" }

// CheckKV says whether a cache of type t can hold heads of such sizes: nil, or a [*HeadSizeError].
func CheckKV(t gguf.Type, keyLen, valLen int) error {
	for _, n := range []int{keyLen, valLen} {
		if KVQuantised(t) && n%kvBlock != 0 {
			return &HeadSizeError{t, n}
		}
	}
	return nil
}

// kvLanes is how many lanes bring a row of n values into a cache of blocks: 16 for two.
func kvLanes(n uint32) uint64 { return 16 * groups(uint64(n), 2*kvBlock) }

// KVAppendArgs stores K (Rows, HeadsKV, KeyLen) and V (Rows, HeadsKV, ValLen) at positions
// Pos (Rows) of sequences Seq (Rows), both uint32. Pages is as in [FlashAttnArgs].
type KVAppendArgs struct {
	K, V, Pages, Pos, Seq             uint64
	Rows, HeadsKV, KeyLen, ValLen     uint32
	MaxPages, PagePositions, LayerOff uint32
	KStride, VStride, _               uint32
}

// Workgroups counts the workgroups for a cache of type t: one lane per pair of values, or per 4 of blocks.
func (a *KVAppendArgs) Workgroups(t gguf.Type) uint64 {
	if KVQuantised(t) {
		return groups(uint64(a.Rows)*uint64(a.HeadsKV)*(kvLanes(a.KeyLen)+kvLanes(a.ValLen)), lanes)
	}
	return groups(uint64(a.Rows)*uint64(a.HeadsKV)*(uint64(a.KeyLen)+uint64(a.ValLen))/2, lanes)
}

// RopeKVArgs is RopeArgs of Q (Rows, Heads, KeyLen) and K (Rows, HeadsKV, KeyLen), and KVAppendArgs of what becomes of K
// and of V. Q is turned in place, K stays as it is.
type RopeKVArgs struct {
	Q, K, V, CosSin, Pages, Pos, Seq              uint64
	Rows, Heads, HeadsKV, KeyLen, ValLen, RopeDim uint32
	MaxPages, PagePositions, LayerOff             uint32
	QStride, KStride, VStride, Neox, _            uint32
}

// RopeNormKVArgs is RopeKVArgs with an RMSNorm of each head of Q and of K before that, by weights QNorm and KNorm (KeyLen) and Eps.
// The strides are multiples of 4.
type RopeNormKVArgs struct {
	Q, K, V, CosSin, Pages, Pos, Seq, QNorm, KNorm uint64
	Rows, Heads, HeadsKV, KeyLen, ValLen, RopeDim  uint32
	MaxPages, PagePositions, LayerOff              uint32
	QStride, KStride, VStride, Neox                uint32
	Eps                                            float32
}

// Normed is a behind such norms.
func (a RopeKVArgs) Normed(qNorm, kNorm uint64, eps float32) RopeNormKVArgs {
	return RopeNormKVArgs{
		Q: a.Q, K: a.K, V: a.V, CosSin: a.CosSin, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq, QNorm: qNorm, KNorm: kNorm,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, RopeDim: a.RopeDim,
		MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff,
		QStride: a.QStride, KStride: a.KStride, VStride: a.VStride, Neox: a.Neox, Eps: eps,
	}
}

// Unnormed is the arguments without the norms.
func (a *RopeNormKVArgs) Unnormed() RopeKVArgs {
	return RopeKVArgs{
		Q: a.Q, K: a.K, V: a.V, CosSin: a.CosSin, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, RopeDim: a.RopeDim,
		MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff,
		QStride: a.QStride, KStride: a.KStride, VStride: a.VStride, Neox: a.Neox,
	}
}

// MaxHeadNormed is the largest head size of keys that rope_norm_kv takes.
const MaxHeadNormed = 4 * lanes

// RowLanes are the lanes that a head of Q or K has: as many as it has runs of 4 values, and two blocks' at least.
func (a *RopeNormKVArgs) RowLanes() uint32 {
	n := uint32(16)
	for ; n < lanes && 4*n < a.KeyLen; n *= 2 {
	}
	return n
}

// Workgroups counts the workgroups: whole ones for a row.
func (a *RopeNormKVArgs) Workgroups() uint64 {
	ofRow := uint64(a.Heads+a.HeadsKV)*uint64(a.RowLanes()) + uint64(a.HeadsKV)*kvLanes(a.ValLen)
	return uint64(a.Rows) * groups(ofRow, lanes)
}

// Workgroups counts the workgroups for a cache of type t: one lane per 4 values.
func (a *RopeKVArgs) Workgroups(t gguf.Type) uint64 {
	q, k, v := uint64(a.Heads)*uint64(a.KeyLen)/4, uint64(a.KeyLen)/4, uint64(a.ValLen)/4
	if KVQuantised(t) {
		q, k, v = groups(q, 16)*16, kvLanes(a.KeyLen), kvLanes(a.ValLen)
	}
	return groups(uint64(a.Rows)*(q+uint64(a.HeadsKV)*(k+v)), lanes)
}

// FlashAttnArgs: Dst (Rows, Heads, ValLen) = softmax(scores)·V, scores = Scale · Q·Kᵀ, Q (Rows, Heads, KeyLen). Seen
// (Rows, 2) uint32 has the first and the last position of sequence Seq[r] that row r sees, the last one included. Where
// attention is told that rows are of one sequence, neither may descend from row to row.
//
// A SoftCap that is not 0 keeps scores between it and its negative: SoftCap · tanh(score/SoftCap). Then Slopes (Heads), where
// not 0, are float32 by which a head's scores fall off: a position has Slope · (position - last position seen) added.
// Sinks (Heads), where not 0, are float32 scores that join a head's softmax without a value.
//
// Pages holds page addresses: position p of sequence s is in page Pages[s*MaxPages + p/PagePositions].
// LayerOff bytes into a page (a multiple of 16) lie K (HeadsKV, PagePositions, KeyLen), then V (HeadsKV, PagePositions,
// ValLen), of one of [KVTypes]. Of blocks of 32 values, whole ones only, a head has the whole numbers of all positions, then
// their scales, F16, of each position as many as make whole words:
//
//   - Q8_0: value i is byte i;
//   - Q4_0: of 8 values, 8i…8i+7, value j is nibble j/4 of byte 4i + j%4.
type FlashAttnArgs struct {
	Q, Dst, Pages, Seen, Seq             uint64
	Sinks, Slopes                        uint64
	Rows, Heads, HeadsKV, KeyLen, ValLen uint32
	MaxPages, PagePositions, LayerOff    uint32
	QStride, DstStride                   uint32
	Scale, SoftCap                       float32
}

// Workgroups counts the workgroups: one per row and query head.
func (a *FlashAttnArgs) Workgroups() uint64 { return uint64(a.Rows) * uint64(a.Heads) }

// MaxParts is into how many parts flash_attn_split cuts the positions of a row at most in such steps: with the few key
// heads that models have they keep a large device busy, and flash_attn_join is quick.
const MaxParts = 32

// PartPositions is the least positions of a part of flash_attn_split.
const PartPositions = 64

// FlashAttnSplitArgs is FlashAttnArgs for few rows: the positions of each are cut into MaxParts parts at most, and what
// becomes of them stands in Parts until flash_attn_join.
//
// With Counters (Rows, Heads/group), which are 0 before it and after, it is flash_attn_joined, and puts the parts together
// itself, with sinks, at Dst and, where it is not 0, at Bytes, the sums behind as [Q8Sums] says.
//
// PerHead (Heads) float32, where not 0, are [FlashAttnArgs].Slopes if Slopes is 1, else Sinks: no model has both.
type FlashAttnSplitArgs struct {
	Q, Parts, Pages, Seen, Seq, Counters, Dst, Bytes, PerHead uint64
	Rows, Heads, HeadsKV, KeyLen, ValLen                      uint32
	MaxPages, PagePositions, LayerOff, QStride, DstStride     uint32
	MaxParts                                                  uint32
	Scale, SoftCap                                            float32
	Slopes                                                    uint32
}

// CounterBytes is the memory that FlashAttnSplitArgs.Counters take at most.
func CounterBytes(rows, heads uint32) int64 { return 4 * int64(rows) * int64(heads) }

// Workgroups counts the workgroups where each takes a group of query heads that share a key head, and a row's parts have at
// most so many positions together. The first part begins at a multiple of PartPositions.
func (a *FlashAttnSplitArgs) Workgroups(group uint32, positions uint64) uint64 {
	return uint64(a.Rows) * uint64(a.Heads/group) * min(groups(positions, PartPositions), uint64(a.MaxParts))
}

// PartBytes is the memory that the parts of rows of heads take.
func PartBytes(rows, heads, maxParts, valLen uint32) int64 {
	return int64(rows) * int64(heads) * int64(maxParts) * (int64(valLen) + 2) * 4
}

// FlashAttnJoinArgs puts the parts of flash_attn_split together: Dst (Rows, Heads, ValLen), and, where Q is not 0, the
// same in blocks of bytes Q and S, as quantize_q8 would. Seen and Sinks are those of [FlashAttnArgs].
type FlashAttnJoinArgs struct {
	Parts, Seen, Dst, Q, S, Sinks            uint64
	Rows, Heads, ValLen, MaxParts, DstStride uint32
	_                                        uint32
}

// Workgroups counts the workgroups: one per row and head.
func (a *FlashAttnJoinArgs) Workgroups() uint64 { return uint64(a.Rows) * uint64(a.Heads) }
