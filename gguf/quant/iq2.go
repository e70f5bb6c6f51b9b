package quant

import "encoding/binary"

// The super-blocks of 256 values of about 2 bits. Eight values are an entry of a grid and eight signs; the scale of a sub-block has 4 bits.
// y = ±entry·d·(2·scale + 1)/8

// subScale is d·(2n + 1)/8 of the 4 bits n.
func subScale(d float32, n byte) float32 { return d * float32(2*(n&15)+1) / 8 }

// IQ2_XXS, 66 bytes: d, then for each sub-block of 32 values four index bytes and a word of four times 7 signs below the scale.
func decodeIQ2_XXS(dst []float32, src []byte) {
	d, g := half(src), gridsOnce().iq2XXS
	for sub := range 8 {
		index, w := src[2+8*sub:][:4], binary.LittleEndian.Uint32(src[6+8*sub:])
		s := subScale(d, byte(w>>28))
		for l, i := range index {
			put(dst[32*sub+8*l:][:8], g[i], eightSigns(w>>(7*l)&127), s)
		}
	}
}

// IQ2_XS, 74 bytes: d, for each eight values 9 bits of index below 7 signs, 16 nibbles of scales. Sub-blocks of 16.
func decodeIQ2_XS(dst []float32, src []byte) {
	d, scales, g := half(src), src[66:74], gridsOnce().iq2XS
	for e := range 32 {
		q := binary.LittleEndian.Uint16(src[2+2*e:])
		put(dst[8*e:][:8], g[q&511], eightSigns(uint32(q>>9)), subScale(d, scales[e/4]>>(e/2%2*4)))
	}
}

// IQ2_S, 82 bytes: d, for each eight values the low 8 bits of an index, then 8 signs, then the index's upper 2 bits, 16 nibbles of scales.
// Sub-blocks of 16.
func decodeIQ2_S(dst []float32, src []byte) {
	d, low, signs, high, scales, g := half(src), src[2:34], src[34:66], src[66:74], src[74:82], gridsOnce().iq2S
	for e := range 32 {
		i := int(low[e]) | int(high[e/4]>>(e%4*2)&3)<<8
		put(dst[8*e:][:8], g[i], signs[e], subScale(d, scales[e/4]>>(e/2%2*4)))
	}
}
