package quant

// Q1_0, 128 values, 18 bytes: d, a bit for each value, the lowest first. y = d where it is set, else -d.
func decodeQ1_0(dst []float32, src []byte) {
	d := half(src)
	for i := range 128 {
		dst[i] = float32(2*int(src[2+i/8]>>(i%8)&1)-1) * d
	}
}

// Q2_0, 64 values, 18 bytes: d, 2 bits for each value, the lowest first. y = (q - 1)·d
func decodeQ2_0(dst []float32, src []byte) {
	d := half(src)
	for i := range 64 {
		dst[i] = float32(int(src[2+i/4]>>(i%4*2)&3)-1) * d
	}
}
