package ref

import (
	"math"

	"leat/gguf"
)

// Q8 is a matrix in blocks of 32 signed bytes with a scale each.
type Q8 struct {
	Rows, Cols int
	Q          []int8    // (T, K)
	D          []float32 // (T, K/32)
}

// QuantizeQ8 rounds each value to the nearest of 255 steps, a block's largest being the last. A block with NaN or an infinity has the
// scale NaN and zeros.
func QuantizeQ8(x Mat /* (T, K) */) *Q8 {
	q := &Q8{Rows: x.Rows, Cols: x.Cols, Q: make([]int8, x.Rows*x.Cols), D: make([]float32, x.Rows*x.Cols/32)}
	for r := range x.Rows {
		for b := 0; b < x.Cols; b += 32 {
			block := x.Row(r)[b : b+32]
			top := float32(0)
			for _, v := range block {
				top = max(top, float32(math.Abs(float64(v))))
			}
			d := top / 127
			if !allFinite(block) {
				d = float32(math.NaN())
			}
			q.D[(r*x.Cols+b)/32] = d
			for i, v := range block {
				if d > 0 {
					q.Q[r*x.Cols+b+i] = int8(max(-127, min(127, math.RoundToEven(float64(v/d)))))
				}
			}
		}
	}
	return q
}

// Sums adds the first or second 16 values (half 0 or 1) of block b, counted through all rows.
func (q *Q8) Sums(b, half int) int16 {
	sum := int16(0)
	for _, v := range q.Q[b*32+half*16:][:16] {
		sum += int16(v)
	}
	return sum
}

// Mat is what the blocks stand for.
func (q *Q8) Mat() Mat {
	x := Mat{Data: make([]float32, len(q.Q)), Rows: q.Rows, Cols: q.Cols, Stride: q.Cols}
	for i, v := range q.Q {
		x.Data[i] = float32(v) * q.D[i/32]
	}
	return x
}

// MulMatInt8 is MulMat of what the blocks of x stand for.
func MulMatInt8(t gguf.Type, dst Mat /* (T, M) */, w []byte /* (M, K) of t */, x *Q8 /* (T, K) */) error {
	return MulMat(t, dst, w, x.Mat())
}
