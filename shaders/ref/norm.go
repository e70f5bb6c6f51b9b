package ref

import "math"

// RMSNorm scales each row to a root mean square of 1, then by w: rows are the heads of a step's rows, each of which has its own weights or the same; nil:
// none. dst may be x.
func RMSNorm(dst, x Mat /* (T*H, D) */, w []float32 /* (H, D) or (D) */, eps float32) {
	for r := range x.Rows {
		in, out := x.Row(r), dst.Row(r)
		sum := 0.0
		for _, v := range in {
			sum += float64(v) * float64(v)
		}
		by := 1 / math.Sqrt(sum/float64(x.Cols)+float64(eps))
		for i, v := range in {
			out[i] = float32(float64(v) * by * ofHead(w, r*x.Cols+i, 1))
		}
	}
}

// LayerNorm shifts each row to a mean of 0 and scales it to a variance of 1, then scales it by w and shifts it by b, which are as the weights of [RMSNorm].
// dst may be x.
func LayerNorm(dst, x Mat /* (T*H, D) */, w, b []float32 /* (H, D) or (D) */, eps float32) {
	for r := range x.Rows {
		in, out := x.Row(r), dst.Row(r)
		mean, squares := 0.0, 0.0
		for _, v := range in {
			mean += float64(v) / float64(x.Cols)
		}
		for _, v := range in {
			squares += (float64(v) - mean) * (float64(v) - mean)
		}
		by := 1 / math.Sqrt(squares/float64(x.Cols)+float64(eps))
		for i, v := range in {
			at := r*x.Cols + i
			out[i] = float32((float64(v)-mean)*by*ofHead(w, at, 1) + ofHead(b, at, 0))
		}
	}
}

// ofHead is the weight of value i of all rows' heads, or none where there are no weights.
func ofHead(w []float32, i int, none float64) float64 {
	if len(w) == 0 {
		return none
	}
	return float64(w[i%len(w)])
}
