package selftest

import (
	"fmt"
	"math"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// SigmoidMul tests sigmoid_mul: it multiplies rows by the sigmoid of their gates, and some gates saturate. gates is the number of gates in a row, g their
// layout, gap the number of values between rows.
func SigmoidMul(rows, cols, gates int, g ref.Gates, gap int) Case {
	shapeOf := fmt.Sprintf("rows=%d cols=%d gates=%d group=%d gap=%d", rows, cols, gates, g.Group, gap)
	return Case{Kernel: "sigmoid_mul", Shape: shapeOf, MaxNMSE: nmseCurved, build: func(j *job) error {
		x, gate, want := j.normal(rows, cols, gap), j.normal(rows, gates, 0), shape(rows, cols, gap)
		for i := range gate.Data {
			gate.Data[i] *= 20 // so that some gates saturate
		}
		gate.Data[0] = -200 // exp(200) overflows
		ref.SigmoidMul(want, x, gate, g)
		in := j.mat(x)
		j.sums("dst", in, want, 0.1)
		a := shaders.SigmoidMulArgs{X: j.addr(in), Gate: j.addr(j.mat(gate)), Dst: j.addr(in), Rows: uint32(rows), Cols: uint32(cols), XStride: uint32(cols + gap), DstStride: uint32(cols + gap),
			GateStride: uint32(gates), Group: uint32(g.Group), Jump: uint32(g.Jump), Step: uint32(g.Step)}
		j.record = func(r *kernels.Recorder) error { return kernels.SigmoidMul(r, a) }
		return nil
	}}
}

// SwiGLUOAI tests swiglu_oai with count values. Gates and values are multiplied by scale: large ones are clamped.
func SwiGLUOAI(count int, scale float32) Case {
	return Case{Kernel: "swiglu_oai", Shape: fmt.Sprintf("count=%d scale=%g", count, scale), MaxNMSE: nmseCurved, build: func(j *job) error {
		gate, up, want := j.scaled(1, count, 0, scale), j.scaled(1, count, 0, scale), shape(1, count, 0)
		const alpha, limit = 1.702, 7
		if j.spoils {
			gate.Data[3], up.Data[99] = float32(math.NaN()), float32(math.NaN())
		}
		ref.SwiGLUOAI(want.Data, gate.Data, up.Data, alpha, limit)
		in := j.mat(gate)
		j.sums("dst", in, want, 0.01)
		a := shaders.SwiGLUOAIArgs{Gate: j.addr(in), Up: j.addr(j.mat(up)), Dst: j.addr(in), Count: uint32(count), Alpha: alpha, Limit: limit}
		j.record = func(r *kernels.Recorder) error { return kernels.SwiGLUOAI(r, a) }
		return nil
	}}
}

// gateTests has the entries of sigmoid_mul and swiglu_oai.
var gateTests = table{
	"sigmoid_mul": {quick: func(*shaders.Kernel) []Case {
		return []Case{SigmoidMul(9, 192, 384, ref.Gates{Group: 64, Jump: 128, Step: 1}, 8)}
	}},
	"swiglu_oai": {quick: func(*shaders.Kernel) []Case { return []Case{SwiGLUOAI(4097, 8)} }},
}
