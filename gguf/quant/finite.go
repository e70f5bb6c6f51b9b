package quant

import (
	"encoding/binary"

	"leat/gguf"
)

// float is how a number that values are made of lies in a block.
type float int

const (
	inHalf     float = iota // F16
	inBrain                 // BF16
	inFloat                 // F32
	inExponent              // an exponent alone, 255 of which is NaN
)

// numbers are the offsets of a block's scales and minima, or of its one value.
var numbers = map[gguf.Type]struct {
	kind float
	at   []int
}{
	gguf.F32: {inFloat, []int{0}}, gguf.F16: {inHalf, []int{0}}, gguf.BF16: {inBrain, []int{0}},
	gguf.Q4_0: {inHalf, []int{0}}, gguf.Q4_1: {inHalf, []int{0, 2}}, gguf.Q5_0: {inHalf, []int{0}}, gguf.Q5_1: {inHalf, []int{0, 2}}, gguf.Q8_0: {inHalf, []int{0}},
	gguf.Q2_K: {inHalf, []int{80, 82}}, gguf.Q3_K: {inHalf, []int{108}}, gguf.Q4_K: {inHalf, []int{0, 2}}, gguf.Q5_K: {inHalf, []int{0, 2}}, gguf.Q6_K: {inHalf, []int{208}},
	gguf.IQ4_NL: {inHalf, []int{0}}, gguf.IQ4_XS: {inHalf, []int{0}}, gguf.MXFP4: {inExponent, []int{0}},
}

// FirstBroken finds the first block of a tensor that holds NaN or an infinity among what its values are made of, as far as src shows: the
// tensor's bytes from `from` on, which need not begin or end with a block. -1: none does, or the type is none that is decoded.
func FirstBroken(t gguf.Type, src []byte, from int64) (block int64) {
	n, ok := numbers[t]
	if !ok {
		return -1
	}
	size, width := int64(t.BlockBytes()), int64([...]int{inHalf: 2, inBrain: 2, inFloat: 4, inExponent: 1}[n.kind])
	block = -1
	for _, at := range n.at {
		k := max(0, (from-int64(at)+size-1)/size)
		for off := k*size + int64(at) - from; off+width <= int64(len(src)) && (block < 0 || k < block); off, k = off+size, k+1 {
			if n.kind.broken(src[off:]) {
				block = k
			}
		}
	}
	return block
}

// broken reports whether b begins with NaN or an infinity: with all bits of its exponent set.
func (f float) broken(b []byte) bool {
	switch f {
	case inHalf:
		return b[1]&0x7c == 0x7c
	case inBrain:
		return b[1]&0x7f == 0x7f && b[0]&0x80 != 0
	case inFloat:
		return binary.LittleEndian.Uint32(b)&0x7f800000 == 0x7f800000
	}
	return b[0] == 0xff
}
