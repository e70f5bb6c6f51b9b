package quant

import (
	"encoding/binary"
	"math/rand/v2"
)

// The super-blocks of 256 values of less than 2 bits. Eight values are an entry of -1, 0 and 1 with an eighth above or below:
// y = (entry ± 1/8)·d·(2·scale + 1), scale of 3 bits.

// putOnes writes eight values of an entry, a step above or below.
func putOnes(dst []float32, entry uint64, below bool, s float32) {
	shift := float32(0.125)
	if below {
		shift = -shift
	}
	for j := range 8 {
		dst[j] = s * (float32(int(byte(entry>>(8*j)))-1) + shift)
	}
}

// IQ1_S, 50 bytes: d, for each eight values the low 8 bits of an index, then for each sub-block of 32 a word of 16 bits: four times the upper 3
// bits of an index, the scale, and whether the eighth is below.
func decodeIQ1_S(dst []float32, src []byte) {
	d, low, g := half(src), src[2:34], gridsOnce().iq1
	for sub := range 8 {
		w := binary.LittleEndian.Uint16(src[34+2*sub:])
		s := d * float32(2*(w>>12&7)+1)
		for l := range 4 {
			putOnes(dst[32*sub+8*l:][:8], g[int(low[4*sub+l])|int(w>>(3*l)&7)<<8], w>>15 != 0, s)
		}
	}
}

// IQ1_M, 56 bytes: for each eight values the low 8 bits of an index, then a nibble of its upper 3 bits and of whether the eighth is below; four
// words of 16 bits: four scales of sub-blocks of 16, and a nibble of d.
func decodeIQ1_M(dst []float32, src []byte) {
	low, high, g := src[:32], src[32:48], gridsOnce().iq1
	var scales [4]uint16
	d := uint16(0)
	for i := range scales {
		scales[i] = binary.LittleEndian.Uint16(src[48+2*i:])
		d |= scales[i] >> 12 << (4 * i)
	}
	for e := range 32 {
		s := F16ToF32(d) * float32(2*(scales[e/8]>>(e/2%4*3)&7)+1)
		v := high[e/2] >> (e % 2 * 4) & 15
		putOnes(dst[8*e:][:8], g[int(low[e])|int(v&7)<<8], v&8 != 0, s)
	}
}

func randomIQ1_M(b []byte, rng *rand.Rand, scale float32) {
	d := F32ToF16(min(max(spread(rng, scale/rmsIQ1_M), -65504), 65504))
	for i := range 4 {
		b[49+2*i] = b[49+2*i]&15 | byte(d>>(4*i))<<4
	}
}
