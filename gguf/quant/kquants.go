package quant

import "encoding/binary"

// The super-blocks of 256 values. Each splits into sub-blocks of 16 or 32 that have a
// small integer scale (and some a minimum) of their own, under one or two halves.

// Q2_K, 84 bytes: 16 bytes of scale|minimum nibbles, 64 bytes of 2-bit quants, d, dmin.
// Sub-blocks of 16. Each half of 128 values has 32 bytes of quants; value 32·s+i of the
// half is bits 2s, 2s+1 of byte i. y = d·scale·q - dmin·minimum
func decodeQ2_K(dst []float32, src []byte) {
	scales, qs := src[:16], src[16:80]
	d, dmin := half(src[80:]), half(src[82:])
	for sub, s := range scales { // values 16·sub …
		dl, ml := d*float32(s&15), dmin*float32(s>>4)
		q := qs[sub/8*32+sub%2*16:][:16]
		shift := sub % 8 / 2 * 2
		out := dst[16*sub:][:16]
		for i := range out {
			out[i] = float32(dl*float32(q[i]>>shift&3)) - ml
		}
	}
}

// Q3_K, 110 bytes: 32 bytes of third bits, 64 bytes of low two bits (as in Q2_K), 12
// bytes of scales, d. Sub-blocks of 16. The third bit of value 32·s+i is bit s of byte
// i, s counting through all 256. A scale has 6 bits less 32: the low four are nibbles of
// bytes 0–7, the high two lie in bytes 8–11. y = d·(scale - 32)·(q - 4)
func decodeQ3_K(dst []float32, src []byte) {
	high, qs, packed, d := src[:32], src[32:96], src[96:108], half(src[108:])
	for sub := range 16 {
		scale := packed[sub%8] >> (sub / 8 * 4) & 15
		scale |= packed[8+sub%4] >> (sub / 4 * 2) & 3 << 4
		dl := d * float32(int(scale)-32)
		q := qs[sub/8*32+sub%2*16:][:16]
		h := high[sub%2*16:][:16]
		shift, bit := sub%8/2*2, sub/2
		out := dst[16*sub:][:16]
		for i := range out {
			v := int(q[i]>>shift&3) | int(h[i]>>bit&1)<<2
			out[i] = dl * float32(v-4)
		}
	}
}

// scaleMin unpacks sub-block j's 6-bit scale and minimum from the 12 bytes of Q4_K and
// Q5_K: the first four of each are the low bits of bytes 0–3 and 4–7; the last four are
// the nibbles of bytes 8–11 under the top two bits of those bytes.
func scaleMin(p []byte, j int) (scale, minimum float32) {
	if j < 4 {
		return float32(p[j] & 63), float32(p[j+4] & 63)
	}
	s := p[j+4]&15 | p[j-4]>>6<<4
	m := p[j+4]>>4 | p[j]>>6<<4
	return float32(s), float32(m)
}

// Q4_K, 144 bytes: d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles.
// Sub-blocks of 32; each 32 bytes hold one in the low nibbles and the next in the high.
// y = d·scale·q - dmin·minimum
func decodeQ4_K(dst []float32, src []byte) {
	d, dmin, packed, qs := half(src), half(src[2:]), src[4:16], src[16:144]
	for sub := range 8 {
		s, m := scaleMin(packed, sub)
		dl, ml := d*s, dmin*m
		q, shift := qs[sub/2*32:][:32], sub%2*4
		out := dst[32*sub:][:32]
		for i := range out {
			out[i] = float32(dl*float32(q[i]>>shift&15)) - ml
		}
	}
}

// Q5_K, 176 bytes: as Q4_K with 32 bytes of fifth bits before the nibbles: bit s of
// byte i for value i of sub-block s.
func decodeQ5_K(dst []float32, src []byte) {
	d, dmin, packed, high, qs := half(src), half(src[2:]), src[4:16], src[16:48], src[48:176]
	for sub := range 8 {
		s, m := scaleMin(packed, sub)
		dl, ml := d*s, dmin*m
		q, shift := qs[sub/2*32:][:32], sub%2*4
		out := dst[32*sub:][:32]
		for i := range out {
			v := q[i]>>shift&15 | high[i]>>sub&1<<4
			out[i] = float32(dl*float32(v)) - ml
		}
	}
}

// Q6_K, 210 bytes: 128 bytes of low nibbles, 64 bytes of high two bits, 16 int8 scales, d.
// Sub-blocks of 16. In each half of 128 values, value 32·k+i has its nibble in byte
// i + 32·(k mod 2) (high nibble for k ≥ 2) and its high bits at 2k of byte i.
// y = d·scale·(q - 32)
func decodeQ6_K(dst []float32, src []byte) {
	low, high, scales, d := src[:128], src[128:192], src[192:208], half(src[208:])
	for sub := range 16 {
		h, k, i0 := sub/8, sub%8/2, sub%2*16
		dl := d * float32(int8(scales[sub]))
		lo, hi := low[h*64+k%2*32+i0:][:16], high[h*32+i0:][:16]
		out := dst[16*sub:][:16]
		for i := range out {
			v := int(lo[i]>>(k/2*4)&15) | int(hi[i]>>(2*k)&3)<<4
			out[i] = dl * float32(v-32)
		}
	}
}

// IQ4_XS, 136 bytes: d, high two bits of eight scales (one uint16), 4 bytes of their low
// nibbles, 128 bytes of nibbles laid out in each sub-block of 32 as in IQ4_NL.
// y = d·(scale - 32)·levels[q]
func decodeIQ4_XS(dst []float32, src []byte) {
	d, high, low, qs := half(src), binary.LittleEndian.Uint16(src[2:]), src[4:8], src[8:136]
	for sub := range 8 {
		scale := int(low[sub/2]>>(sub%2*4)&15) | int(high>>(2*sub)&3)<<4
		dl := d * float32(scale-32)
		q, out := qs[16*sub:][:16], dst[32*sub:][:32]
		for i := range q {
			out[i] = dl * levels[q[i]&15]
			out[i+16] = dl * levels[q[i]>>4]
		}
	}
}
