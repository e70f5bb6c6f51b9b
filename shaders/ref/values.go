package ref

import (
	"fmt"
	"math"

	"leat/gguf"
)

// SiLU is x / (1 + exp(-x)).
func SiLU(x float64) float64 { return x / (1 + math.Exp(-x)) }

// GELU is the tanh form of gelu, as Gemma's and GPT-2's reference code have it.
func GELU(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// GELUErf is the exact form of gelu: x times the normal distribution.
func GELUErf(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }

// ReLU2 is the square of x where that is positive, else 0.
func ReLU2(x float64) float64 { return max(x, 0) * max(x, 0) }

// XIELU is a parabola for positive x, an exponential for others, both of slope beta at 0.
func XIELU(x float64, alphaP, alphaN, beta, eps float32) float64 {
	if x > 0 {
		return float64(alphaP)*x*x + float64(beta)*x
	}
	return float64(alphaN)*(math.Expm1(min(x, float64(eps)))-x) + float64(beta)*x
}

// Clamp is x, but at least lo and at most hi.
func Clamp(x float64, lo, hi float32) float64 { return max(float64(lo), min(float64(hi), x)) }

// Unary is act(x).
func Unary(dst, x []float32 /* (T*F) */, act func(float64) float64) {
	for i, v := range x {
		dst[i] = float32(act(float64(v)))
	}
}

// GLU is act(gate) * up. All have one shape.
func GLU(dst, gate, up []float32 /* (T*F) */, act func(float64) float64) {
	for i, v := range gate {
		dst[i] = float32(act(float64(v)) * float64(up[i]))
	}
}

// SwiGLU is [GLU] of SiLU.
func SwiGLU(dst, gate, up []float32 /* (T*F) */) { GLU(dst, gate, up, SiLU) }

// GeGLU is [GLU] of GELU's tanh form.
func GeGLU(dst, gate, up []float32 /* (T*F) */) { GLU(dst, gate, up, GELU) }

// Add is dst[i] = a[i] + b[i mod len(b)]: a bias (D) over the rows of (T, D), or a residual of a's own shape.
func Add(dst, a []float32 /* (T*D) */, b []float32 /* (D) or (T*D) */) {
	for i, v := range a {
		dst[i] = v + b[i%len(b)]
	}
}

// AddScaled is a + factor * b.
func AddScaled(dst, a, b []float32 /* (T*D) */, factor float32) {
	for i, v := range a {
		dst[i] = float32(float64(v) + float64(factor)*float64(b[i]))
	}
}

// AddRows adds rows of a typed table to those of dst: row ids[r] to row r.
func AddRows(t gguf.Type, dst Mat /* (T, D) */, table []byte /* (P, D) of t */, ids []uint32 /* (T) */) error {
	rows := NewMat(dst.Rows, dst.Cols)
	if err := GetRows(t, rows, table, ids); err != nil {
		return fmt.Errorf("add_rows: %w", err)
	}
	for r := range dst.Rows {
		Add(dst.Row(r), dst.Row(r), rows.Row(r))
	}
	return nil
}

// Mul is dst[i] = a[i] * b[i / repeat mod len(b)].
func Mul(dst, a []float32 /* (T*D) */, b []float32, repeat int) {
	for i, v := range a {
		dst[i] = v * b[i/repeat%len(b)]
	}
}

// Scale is factor * x.
func Scale(dst, x []float32 /* (T*D) */, factor float32) {
	for i, v := range x {
		dst[i] = factor * v
	}
}

// Cpy copies rows of x to those of dst, each as many times as dst has rows for it.
func Cpy(dst, x Mat /* (T, D) */) {
	for t := range dst.Rows {
		copy(dst.Row(t), x.Row(t/(dst.Rows/x.Rows)))
	}
}

// SoftCap is limit * tanh(factor * x / limit), but what is infinite stays.
func SoftCap(dst, x []float32 /* (T*V) */, factor, limit float32) {
	for i, v := range x {
		y := float64(v) * float64(factor)
		if !math.IsInf(y, 0) {
			y = float64(limit) * math.Tanh(y/float64(limit))
		}
		dst[i] = float32(y)
	}
}
