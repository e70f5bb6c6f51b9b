package ref

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
)

// GetRows decodes rows of a typed table: dst[r] = table[ids[r]].
func GetRows(t gguf.Type, dst Mat /* (T, D) */, table []byte /* (V, D) of t */, ids []uint32 /* (T) */) error {
	rowBytes, err := t.RowBytes(int64(dst.Cols))
	if err != nil {
		return fmt.Errorf("get_rows of %s: %w", t, err)
	}
	for r, id := range ids {
		off := int64(id) * rowBytes
		if err := quant.Decode(t, dst.Row(r), table[off:off+rowBytes]); err != nil {
			return fmt.Errorf("get_rows of %s, row %d: %w", t, id, err)
		}
	}
	return nil
}

// MulMat multiplies by a typed weight: dst[n][m] = sum over k of w[m][k] * x[n][k].
func MulMat(t gguf.Type, dst Mat /* (T, M) */, w []byte /* (M, K) of t */, x Mat /* (T, K) */) error {
	rowBytes, err := t.RowBytes(int64(x.Cols))
	if err != nil {
		return fmt.Errorf("mul_mat of %s: %w", t, err)
	}
	row := make([]float32, x.Cols) // (K) one weight row, decoded
	for m := range dst.Cols {
		off := int64(m) * rowBytes
		if err := quant.Decode(t, row, w[off:off+rowBytes]); err != nil {
			return fmt.Errorf("mul_mat of %s, row %d: %w", t, m, err)
		}
		for n := range x.Rows {
			dst.Data[n*dst.Stride+m] = float32(dot(row, x.Row(n)))
		}
	}
	return nil
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

// SoftMax turns each row into probabilities of scale*x, with the row's maximum taken out so that exp cannot overflow.
func SoftMax(dst, x Mat /* (T, N) */, scale float32) {
	p := make([]float64, x.Cols) // (N)
	for r := range x.Rows {
		for i, v := range x.Row(r) {
			p[i] = float64(v) * float64(scale)
		}
		softMax(p)
		for i, v := range p {
			dst.Row(r)[i] = float32(v)
		}
	}
}

func softMax(p []float64) {
	top := math.Inf(-1)
	for _, v := range p {
		top = max(top, v)
	}
	sum := 0.0
	for i, v := range p {
		p[i] = math.Exp(v - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
}

// Argmax is the column of the largest value in each row, the lowest among equals; of a row with NaN or an infinity
// the first such column, inverted.
func Argmax(dst []uint32 /* (T) */, x Mat /* (T, V) */) {
	for r := range x.Rows {
		row := x.Row(r)
		best := 0
		for i, v := range row {
			if !finite(v) {
				best = ^i
				break
			}
			if v > row[best] {
				best = i
			}
		}
		dst[r] = uint32(best)
	}
}

// Checksum is the xor of the words of each piece bytes of src.
func Checksum(dst []uint32, src []uint32, piece int) {
	for i, w := range src {
		dst[i/(piece/4)] ^= w
	}
}
