package exec

import (
	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/shaders"
)

// headMulMat records a product for each head with a matrix of its own.
func (r *run) headMulMat(o *arch.Op, t *pack.Tensor, weight uint64) error {
	n, x, dst := uint32(len(r.rows)), r.width(o.A), r.width(o.Dst)
	heads := uint64(o.Heads)
	for h := range heads {
		a := shaders.MulMatArgs{
			W: weight + h*uint64(t.Bytes)/heads, X: r.value(o.A) + h*4*uint64(x)/heads, Dst: r.value(o.Dst) + h*4*uint64(dst)/heads,
			M: uint32(o.Rows), K: uint32(o.Cols), N: n, XStride: x, DstStride: dst,
		}
		if err := r.mulMat(t.Type, a); err != nil {
			return err
		}
	}
	return nil
}

// headCopy records a copy of a part of each head.
func (r *run) headCopy(o *arch.Op) error {
	heads := uint32(o.Heads)
	return r.rec.Cpy(shaders.CpyArgs{
		X: r.value(o.A) + 4*uint64(o.OffA), Dst: r.value(o.Dst) + 4*uint64(o.Off), Rows: uint32(len(r.rows)) * heads, Cols: uint32(o.Cols),
		XStride: r.width(o.A) / heads, DstStride: r.width(o.Dst) / heads,
	})
}
