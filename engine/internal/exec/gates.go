package exec

import (
	"leat/engine/arch"
	"leat/shaders"
)

// sigmoidMul records a product with gates, one for each value or one for the row.
func (r *run) sigmoidMul(o *arch.Op) error {
	cols, gates := r.width(o.A), r.width(o.B)
	a := shaders.SigmoidMulArgs{
		X: r.value(o.A), Gate: r.value(o.B), Dst: r.value(o.Dst), Rows: uint32(len(r.rows)), Cols: cols,
		XStride: cols, DstStride: cols, GateStride: gates, Group: cols,
	}
	if gates > 1 {
		a.Step = 1
	}
	return r.rec.SigmoidMul(a)
}
