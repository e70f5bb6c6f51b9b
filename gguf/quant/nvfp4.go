package quant

import (
	"math"
	"math/rand/v2"
)

// eighth is a scale of NVFP4: half the value of an 8-bit float without sign, of 4 bits of exponent and 3 of mantissa. 0x7f is no number and
// counts as 0; the top bit counts for nothing.
func eighth(e byte) float32 {
	if e == 0x7f {
		return 0
	}
	return F16ToF32(uint16(e&0x7f)<<7) * 128
}

// NVFP4, 64 values, 36 bytes: a scale for each 16 values, then for each 16 eight bytes of nibbles, the low ones first. y = fours[q]·scale
func decodeNVFP4(dst []float32, src []byte) {
	for run, e := range src[:4] {
		d, out := eighth(e), dst[16*run:]
		for i, q := range src[4+8*run:][:8] {
			out[i] = d * fours[q&15]
			out[i+8] = d * fours[q>>4]
		}
	}
}

// Scales have few bits: of the two around the wanted one each run takes one, such that their squares' mean is its square.
func randomNVFP4(b []byte, rng *rand.Rand, scale float32) {
	for i := range 4 {
		want := float64(spread(rng, scale/rmsNVFP4))
		e := byte(0)
		for e < 0x7d && float64(eighth(e+1)) <= math.Abs(want) {
			e++
		}
		low, high := float64(eighth(e)), float64(eighth(e+1))
		if rng.Float64()*(high*high-low*low) < want*want-low*low {
			e++
		}
		b[i] = e | b[i]&0x80
	}
}
