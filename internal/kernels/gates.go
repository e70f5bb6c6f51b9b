package kernels

import (
	"fmt"

	"leat/shaders"
)

// SigmoidMul is Dst = X * sigmoid(gate), Dst may be X.
func SigmoidMul(r *Recorder, a shaders.SigmoidMulArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "sigmoid_mul"}}
	c.words("X", a.X)
	c.words("Gate", a.Gate)
	c.words("Dst", a.Dst)
	c.stride("XStride", a.XStride, a.Cols)
	c.stride("DstStride", a.DstStride, a.Cols)
	c.positive("Group", a.Group)
	if a.Group > 0 {
		last := uint64(a.Cols-1)/uint64(a.Group)*uint64(a.Jump) + uint64(min(a.Cols, a.Group)-1)*uint64(a.Step)
		if last >= uint64(a.GateStride) {
			c.require(false, "GateStride", a.GateStride, fmt.Sprintf("more than %d, the last gate's place", last))
		}
	}
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.read(f32s(a.Gate, a.Rows, a.GateStride, a.GateStride))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(), &t, cost{12 * n, 4 * n})
}

// SwiGLUOAI is Dst = g * sigmoid(Alpha*g) * (u + 1) of clamped Gate and Up.
func SwiGLUOAI(r *Recorder, a shaders.SwiGLUOAIArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "swiglu_oai"}}
	c.words("Gate", a.Gate)
	c.words("Up", a.Up)
	c.words("Dst", a.Dst)
	if !(a.Limit > 0) {
		c.require(false, "Limit", a.Limit, "more than 0")
	}
	n := float64(a.Count)
	var t touch
	t.read(f32s(a.Gate, 1, a.Count, 0))
	t.read(f32s(a.Up, 1, a.Count, 0))
	t.write(f32s(a.Dst, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{12 * n, 10 * n})
}
