package exec

import (
	"fmt"

	"leat/internal/arch"
	"leat/shaders"
)

// sigmoidMul records a product with gates: one for each value, perhaps a part of a head each, or one for the row.
func (r *run) sigmoidMul(o *arch.Op) error {
	cols, gates := r.width(o.A), r.width(o.B)
	a := shaders.SigmoidMulArgs{
		X: r.value(o.A), Gate: r.value(o.B), Dst: r.value(o.Dst), Rows: uint32(len(r.rows)), Cols: cols,
		XStride: cols, DstStride: cols, GateStride: gates, Group: cols,
	}
	switch {
	case o.Heads > 0:
		a.Gate += 4 * uint64(o.Off)
		a.Group, a.Jump, a.Step = cols/uint32(o.Heads), gates/uint32(o.Heads), 1
	case gates > 1:
		a.Step = 1
	}
	return r.rec.SigmoidMul(a)
}

// What gpt-oss' gated unit is made with.
const (
	oaiAlpha = 1.702
	oaiLimit = 7
)

// eachPair records what is computed value by value between the products of experts. What it makes of pairs whose experts
// are not there nobody reads: their products come first.
func (r *run) eachPair(o *arch.Op) error {
	count := uint32(len(r.rows)) * r.width(o.Dst)
	switch o.Kind {
	case arch.Add:
		return r.rec.Add(shaders.AddArgs{A: r.value(o.A), B: r.value(o.B), Dst: r.value(o.Dst), Count: count, BCols: count})
	case arch.SwiGLUOAI:
		return r.rec.SwiGLUOAI(shaders.SwiGLUOAIArgs{Gate: r.value(o.A), Up: r.value(o.B), Dst: r.value(o.Dst), Count: count, Alpha: oaiAlpha, Limit: oaiLimit})
	}
	return fmt.Errorf("operation %d has no kernel for experts", o.Kind)
}
