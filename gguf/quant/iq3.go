package quant

import "encoding/binary"

// The super-blocks of 256 values of about 3 bits. Four values are an entry of a grid, with a sign for each. Sub-blocks of 32 have a scale of 4
// bits.

// IQ3_XXS, 98 bytes: d, 64 index bytes, then for each sub-block a word of four times 7 signs, for 8 values each, below the scale.
// y = ±entry·d·(2·scale + 1)/4
func decodeIQ3_XXS(dst []float32, src []byte) {
	d, index, g := half(src), src[2:66], gridsOnce().iq3XXS
	for sub := range 8 {
		w := binary.LittleEndian.Uint32(src[66+4*sub:])
		s := d * float32(2*(w>>28)+1) / 4
		for l := range 4 {
			signs, e := eightSigns(w>>(7*l)&127), 4*sub+l
			put(dst[8*e:][:4], g[index[2*e]], signs, s)
			put(dst[8*e+4:][:4], g[index[2*e+1]], signs>>4, s)
		}
	}
}

// IQ3_S, 110 bytes: d, for each four values the low 8 bits of an index, then the ninth bits, then signs, 8 nibbles of scales.
// y = ±entry·d·(2·scale + 1)
func decodeIQ3_S(dst []float32, src []byte) {
	d, low, high, signs, scales, g := half(src), src[2:66], src[66:74], src[74:106], src[106:110], gridsOnce().iq3S
	for q := range 64 {
		s := d * float32(2*(scales[q/16]>>(q/8%2*4)&15)+1)
		i := int(low[q]) | int(high[q/8]>>(q%8)&1)<<8
		put(dst[4*q:][:4], g[i], signs[q/2]>>(q%2*4), s)
	}
}
