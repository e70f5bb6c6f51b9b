package exec

import (
	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/shaders"
)

// headMulMat records a product for each head with a matrix of its own, in parts where it would run too long.
func (r *run) headMulMat(o *arch.Op, t *pack.Tensor, weight uint64) error {
	x, dst, heads := r.width(o.A), r.width(o.Dst), uint32(o.Heads)
	a := shaders.MulMatHeadsArgs{
		W: weight, M: uint32(o.Rows), K: uint32(o.Cols), Heads: heads,
		XStride: x, DstStride: dst, XHead: x / heads, DstHead: dst / heads,
	}
	perRow := 2 * float64(heads) * float64(a.M) * float64(a.K)
	return r.byRows(uint32(len(r.rows)), perRow, func(from, n uint32) error {
		a.N, a.X, a.Dst = n, r.value(o.A)+4*uint64(from)*uint64(x), r.value(o.Dst)+4*uint64(from)*uint64(dst)
		return r.rec.MulMatHeads(t.Type, a)
	})
}

// headCopy records a copy of a part of each head.
func (r *run) headCopy(o *arch.Op) error {
	heads := uint32(o.Heads)
	return r.rec.Cpy(shaders.CpyArgs{
		X: r.value(o.A) + 4*uint64(o.OffA), Dst: r.value(o.Dst) + 4*uint64(o.Off), Rows: uint32(len(r.rows)) * heads, Cols: uint32(o.Cols),
		XStride: r.width(o.A) / heads, DstStride: r.width(o.Dst) / heads,
	})
}
