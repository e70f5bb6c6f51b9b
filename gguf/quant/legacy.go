package quant

import (
	"encoding/binary"
	"math"
)

// The blocks of 32 values. Value i < 16 is the low nibble of byte i, value i+16 the
// high one; d and m are halves.

// Q4_0, 18 bytes: d, 16 bytes of nibbles. y = (q - 8)·d
func decodeQ4_0(dst []float32, src []byte) {
	d, qs := half(src), src[2:18]
	for i, q := range qs {
		dst[i] = float32(int(q&15)-8) * d
		dst[i+16] = float32(int(q>>4)-8) * d
	}
}

// Q4_1, 20 bytes: d, m, 16 bytes of nibbles. y = q·d + m
func decodeQ4_1(dst []float32, src []byte) {
	d, m, qs := half(src), half(src[2:]), src[4:20]
	for i, q := range qs {
		dst[i] = float32(float32(q&15)*d) + m
		dst[i+16] = float32(float32(q>>4)*d) + m
	}
}

// Q5_0, 22 bytes: d, 32 fifth bits (bit i for value i), 16 bytes of nibbles. y = (q - 16)·d
func decodeQ5_0(dst []float32, src []byte) {
	d, high, qs := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22]
	for i, q := range qs {
		lo := int(q&15) | int(high>>i&1)<<4
		hi := int(q>>4) | int(high>>(i+16)&1)<<4
		dst[i] = float32(lo-16) * d
		dst[i+16] = float32(hi-16) * d
	}
}

// Q5_1, 24 bytes: d, m, 32 fifth bits, 16 bytes of nibbles. y = q·d + m
func decodeQ5_1(dst []float32, src []byte) {
	d, m, high, qs := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:]), src[8:24]
	for i, q := range qs {
		lo := int(q&15) | int(high>>i&1)<<4
		hi := int(q>>4) | int(high>>(i+16)&1)<<4
		dst[i] = float32(float32(lo)*d) + m
		dst[i+16] = float32(float32(hi)*d) + m
	}
}

// Q8_0, 34 bytes: d, 32 int8. y = q·d
func decodeQ8_0(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:34] {
		dst[i] = float32(int8(q)) * d
	}
}

// levels are the sixteen values an IQ4 nibble stands for.
var levels = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// IQ4_NL, 18 bytes: d, 16 bytes of nibbles. y = d·levels[q]
func decodeIQ4_NL(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:18] {
		dst[i] = d * levels[q&15]
		dst[i+16] = d * levels[q>>4]
	}
}

// fours are twice the values of a 4-bit float with 2 bits of exponent and 1 of mantissa.
var fours = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// MXFP4, 17 bytes: e, 16 bytes of nibbles. y = fours[q]·2^(e-128): OCP's microscaling format, but with ggml's order of nibbles.
func decodeMXFP4(dst []float32, src []byte) {
	d := float32(math.Ldexp(1, int(src[0])-128))
	for i, q := range src[1:17] {
		dst[i] = d * fours[q&15]
		dst[i+16] = d * fours[q>>4]
	}
}
