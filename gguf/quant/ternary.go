package quant

// The super-blocks of 256 values of three levels: y = (q - 1)·d.

// TQ1_0, 54 bytes: 48 bytes of five digits each, 4 of four, d. A byte is a fraction of 256 in base 3: digit n is the whole part of three times
// the fraction that is left when n digits are taken. Digit n of the first 32 bytes is values 32·n …, of the next 16 bytes values 160 + 16·n …,
// of the last 4 values 240 + 4·n ….
func decodeTQ1_0(dst []float32, src []byte) {
	d := half(src[52:])
	for _, part := range []struct{ from, to, digits int }{{0, 32, 5}, {32, 48, 5}, {48, 52, 4}} {
		power := byte(1)
		for range part.digits {
			for i, b := range src[part.from:part.to] {
				q := int(b*power) * 3 >> 8
				dst[i] = float32(q-1) * d
			}
			dst, power = dst[part.to-part.from:], power*3
		}
	}
}

// TQ2_0, 66 bytes: 64 bytes of 2-bit quants in the order of Q2_K, d.
func decodeTQ2_0(dst []float32, src []byte) {
	d := half(src[64:])
	for sub := range 8 { // values 32·sub …
		for i, q := range src[sub/4*32:][:32] {
			dst[32*sub+i] = float32(int(q>>(sub%4*2)&3)-1) * d
		}
	}
}
