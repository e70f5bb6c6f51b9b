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
	inNibbles               // the upper half of an F16 in the top nibbles of two words of 16 bits, the higher ones in the second
)

// numbers are the offsets of a block's scales and minima, or of its one value.
type numbers struct {
	kind float
	at   []int
}

func halves(at ...int) numbers { return numbers{inHalf, at} }

// FirstBroken finds the first block of a tensor that holds NaN or an infinity among what its values are made of, as far as src shows: the
// tensor's bytes from `from` on, which need not begin or end with a block. -1: none does, or the type is none that is decoded.
func FirstBroken(t gguf.Type, src []byte, from int64) (block int64) {
	r, err := lookup(t)
	if err != nil {
		return -1
	}
	n := r.numbers
	size, width := int64(t.BlockBytes()), int64([...]int{inHalf: 2, inBrain: 2, inFloat: 4, inExponent: 1, inNibbles: 4}[n.kind])
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
	case inNibbles:
		return b[3]&0x70 == 0x70 && b[1]&0xc0 == 0xc0
	}
	return b[0] == 0xff
}
