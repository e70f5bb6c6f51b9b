package truth

import (
	"math"
	"slices"
)

// multiply is w · x, w (rows, cols).
func multiply(w *tensor, x []float64) []float64 {
	cols := w.shape[len(w.shape)-1]
	if cols != len(x) {
		fail("product of a matrix of %d columns with %d values", cols, len(x))
	}
	y := make([]float64, len(w.values)/cols)
	for i := range y {
		for j, v := range w.values[i*cols : (i+1)*cols] {
			y[i] += float64(v) * x[j]
		}
	}
	return y
}

// linear is multiply with weight NAME.weight, times NAME.scale and plus NAME.bias where there are such.
func (m *Model) linear(name string, x []float64) []float64 {
	y := multiply(m.tensor(name+".weight"), x)
	if scale := m.vector(name + ".scale"); scale != nil {
		scaleBy(y, scale[0])
	}
	for i, b := range m.vector(name + ".bias") {
		y[i] += float64(b)
	}
	return y
}

func scaleBy(y []float64, scale float32) {
	for i := range y {
		y[i] *= float64(scale)
	}
}

// rmsNorm is x / rms(x) * w.
func (m *Model) rmsNorm(x []float64, w []float32) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	r := 1 / math.Sqrt(sum/float64(len(x))+m.eps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * r * float64(w[i])
	}
	return y
}

// norm is rmsNorm with the weight NAME.weight.
func (m *Model) norm(name string, x []float64) []float64 {
	return m.rmsNorm(x, m.tensor(name+".weight").values)
}

// headNorm is norm of each head of size n, in place, where the file has such a weight.
func (m *Model) headNorm(name string, x []float64, n int) {
	if w := m.vector(name + ".weight"); w != nil {
		for head := range slices.Chunk(x, n) {
			copy(head, m.rmsNorm(head, w))
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func silu(x float64) float64    { return x * sigmoid(x) }

func addTo(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

func softMax(x []float64) {
	most, sum := slices.Max(x), 0.0
	for i, v := range x {
		x[i] = math.Exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// swiglu is silu(gate) * up.
func swiglu(gate, up []float64) []float64 {
	y := make([]float64, len(gate))
	for i := range y {
		y[i] = silu(gate[i]) * up[i]
	}
	return y
}

// ffn is a gated FFN of the weights PREFIX_gate, _up and _down, each with an ending: "" or "_shexp".
func (m *Model) ffn(prefix, ending string, x []float64) []float64 {
	gate, up := m.linear(prefix+"ffn_gate"+ending, x), m.linear(prefix+"ffn_up"+ending, x)
	return m.linear(prefix+"ffn_down"+ending, swiglu(gate, up))
}
