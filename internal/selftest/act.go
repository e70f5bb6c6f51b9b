package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// acts are the activation functions by the op that applies them, with a gate or without.
var acts = map[string]struct {
	kernels.Act
	of func(float64) float64
}{
	"swiglu": {kernels.SiLU, ref.SiLU}, "geglu": {kernels.GELU, ref.GELU}, "geglu_erf": {kernels.GELUErf, ref.GELUErf},
	"gelu": {kernels.GELU, ref.GELU}, "gelu_erf": {kernels.GELUErf, ref.GELUErf}, "relu2": {kernels.ReLU2, ref.ReLU2},
}

// GLU tests op, swiglu, geglu or geglu_erf, with count values. The gates are multiplied by scale: large ones saturate.
func GLU(op string, count int, scale float32) Case {
	return Case{
		Kernel: op, Shape: fmt.Sprintf("count=%d scale=%g", count, scale), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			gate, up, want := j.scaled(1, count, 0, scale), j.normal(1, count, 0), shape(1, count, 0)
			act := acts[op]
			ref.GLU(want.Data, gate.Data, up.Data, act.of)
			in := j.mat(gate) // the result overwrites the gates, as in an FFN
			// 1 + tanh and exp lose all digits of a gate far below 0, but its result is almost 0.
			j.sums("dst", in, want, 0.01)
			a := shaders.GLUArgs{Gate: j.addr(in), Up: j.addr(j.mat(up)), Dst: j.addr(in), Count: uint32(count)}
			j.record = func(r *kernels.Recorder) error { return kernels.GLU(r, act.Act, a) }
			return nil
		},
	}
}

// values makes a matrix of values mean + size * N(0, 1), the input of an activation function; want is for its output, which overwrites the input at in.
func (j *job) values(rows, cols int, mean, size float32) (x, want ref.Mat, in span) {
	x = j.normal(rows, cols, 0)
	for i, v := range x.Data {
		x.Data[i] = mean + size*v
	}
	return x, shape(rows, cols, 0), j.mat(x)
}

// Unary tests op, an activation function without a gate: gelu, gelu_erf or relu2. It overwrites values mean + size * N(0, 1).
func Unary(op string, rows, cols int, mean, size float32) Case {
	return Case{Kernel: op, Shape: fmt.Sprintf("rows=%d cols=%d mean=%g size=%g", rows, cols, mean, size), MaxNMSE: nmseFine, build: func(j *job) error {
		x, want, in := j.values(rows, cols, mean, size)
		act := acts[op]
		ref.Unary(want.Data, x.Data, act.of)
		j.output("dst", in, want)
		a := shaders.UnaryArgs{X: j.addr(in), Dst: j.addr(in), Count: uint32(rows * cols)}
		j.record = func(r *kernels.Recorder) error { return kernels.Unary(r, act.Act, a) }
		return nil
	}}
}

// XIELU tests xielu, which overwrites values mean + size * N(0, 1).
func XIELU(rows, cols int, mean, size float32) Case {
	return Case{Kernel: "xielu", Shape: fmt.Sprintf("rows=%d cols=%d mean=%g size=%g", rows, cols, mean, size), MaxNMSE: nmseFine, build: func(j *job) error {
		const alphaP, alphaN, beta, eps = 1.1, 0.7, 0.5, -1e-6
		x, want, in := j.values(rows, cols, mean, size)
		ref.Unary(want.Data, x.Data, func(v float64) float64 { return ref.XIELU(v, alphaP, alphaN, beta, eps) })
		j.output("dst", in, want)
		a := shaders.XIELUArgs{X: j.addr(in), Dst: j.addr(in), Count: uint32(rows * cols), AlphaP: alphaP, AlphaN: alphaN, Beta: beta, Eps: eps}
		j.record = func(r *kernels.Recorder) error { return kernels.XIELU(r, a) }
		return nil
	}}
}

// Clamp tests clamp, which overwrites N(0, 1) values by those between -limit and limit.
func Clamp(rows, cols int, limit float32) Case {
	return Case{Kernel: "clamp", Shape: fmt.Sprintf("rows=%d cols=%d limit=%g", rows, cols, limit), MaxNMSE: nmseExact, build: func(j *job) error {
		x, want, in := j.values(rows, cols, 0, 1)
		ref.Unary(want.Data, x.Data, func(v float64) float64 { return ref.Clamp(v, -limit, limit) })
		j.output("dst", in, want)
		a := shaders.ClampArgs{X: j.addr(in), Dst: j.addr(in), Count: uint32(rows * cols), Min: -limit, Max: limit}
		j.record = func(r *kernels.Recorder) error { return kernels.Clamp(r, a) }
		return nil
	}}
}

func quickGLU(k *shaders.Kernel) []Case { return []Case{GLU(k.Op, 172, 30), GLU(k.Op, 4097, 1)} }

// quickUnary has cases with values around 0, and with values below 0, whose results are small differences.
func quickUnary(k *shaders.Kernel) []Case {
	return []Case{Unary(k.Op, 3, 1365, 0, 2), Unary(k.Op, 1, 1000, -3, 0.5)}
}

// actTests has the entries of activation functions.
var actTests = table{
	"swiglu": {quick: quickGLU}, "geglu": {quick: quickGLU}, "geglu_erf": {quick: quickGLU},
	"gelu": {quick: quickUnary}, "gelu_erf": {quick: quickUnary}, "relu2": {quick: quickUnary},
	"xielu": {quick: func(*shaders.Kernel) []Case { return []Case{XIELU(3, 1365, 0, 2), XIELU(1, 1000, -0.1, 0.03)} }},
	"clamp": {quick: func(*shaders.Kernel) []Case { return []Case{Clamp(3, 1365, 0.7)} }},
}
