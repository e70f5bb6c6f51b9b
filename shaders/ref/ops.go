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

// RMSNorm scales each row to a root mean square of 1, then by w. dst may be x.
func RMSNorm(dst, x Mat /* (T, D) */, w []float32 /* (D) */, eps float32) {
	for r := range x.Rows {
		in, out := x.Row(r), dst.Row(r)
		sum := 0.0
		for _, v := range in {
			sum += float64(v) * float64(v)
		}
		scale := 1 / math.Sqrt(sum/float64(x.Cols)+float64(eps))
		for i, v := range in {
			out[i] = float32(float64(v) * scale * float64(w[i]))
		}
	}
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

// SwiGLU is silu(gate) * up, silu(x) = x / (1 + exp(-x)). All have one shape.
func SwiGLU(dst, gate, up []float32 /* (T*F) */) {
	for i, v := range gate {
		g := float64(v)
		dst[i] = float32(g / (1 + math.Exp(-g)) * float64(up[i]))
	}
}

// GeGLU is gelu(gate) * up with the tanh form of gelu, as Gemma's reference code has it.
func GeGLU(dst, gate, up []float32 /* (T*F) */) {
	for i, v := range gate {
		g := float64(v)
		inner := math.Sqrt(2/math.Pi) * (g + 0.044715*g*g*g)
		dst[i] = float32(0.5 * g * (1 + math.Tanh(inner)) * float64(up[i]))
	}
}

// Add is dst[i] = a[i] + b[i mod len(b)]: a bias (D) over the rows of (T, D), or a residual of a's own shape.
func Add(dst, a []float32 /* (T*D) */, b []float32 /* (D) or (T*D) */) {
	for i, v := range a {
		dst[i] = v + b[i%len(b)]
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
