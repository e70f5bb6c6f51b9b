package quant

import "math"

// F16ToF32 widens an IEEE half. Every half has an exact float32.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 31
	frac := uint32(h & 0x3ff)
	switch exp {
	case 31: // infinity or NaN, whose payload is kept
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case 0: // zero or subnormal: frac units of 2⁻²⁴
		f := float32(frac) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// F32ToF16 narrows to the nearest half, ties to even. What is too large becomes
// infinite; a NaN stays one.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: keep what fits of the payload, and one bit that keeps it a NaN
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x47800000: // 2¹⁶ and more, infinity
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: adding 0.5 leaves the count of 2⁻²⁴ in the low bits, rounded to even
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
	b -= 112 << 23         // exponent bias 127 → 15
	b += 0xfff + (b>>13)&1 // round to nearest even; a carry moves the exponent, as it should
	return sign | uint16(b>>13)
}
