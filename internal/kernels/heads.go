package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// The outputs of a workgroup of mul_mat_heads, the same as those of mul_mat_vec for few rows of X, and of mul_mat for many.
const (
	headRowsFew = 4 // for few rows of X: rows of weights
	headTile    = 8 // for many rows of X: rows of weights, and rows of X
)

// MulMatHeads multiplies each head's part of X by the head's own matrix, of type t. It gives the same bits as [MulMat] in float32 for each head.
func MulMatHeads(r *Recorder, t gguf.Type, a shaders.MulMatHeadsArgs) error {
	if a.M == 0 || a.N == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_heads", typed: true, typ: t, rows: headRowsFew, cols: vecCols(a.N), whole: a.K%8 == 0 && a.XStride%4 == 0 && a.XHead%4 == 0}}
	if c.cols == 0 {
		c.rows, c.cols = headTile, headTile
	}
	c.address("W", a.W)
	c.floats("X", a.X, a.XStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	a.Grids = c.grids(r)
	c.stride("XHead", a.XHead, a.K)
	c.stride("DstHead", a.DstHead, a.M)
	c.stride("XStride", a.XStride, (a.Heads-1)*a.XHead+a.K)
	c.stride("DstStride", a.DstStride, (a.Heads-1)*a.DstHead+a.M)
	m, n, k := float64(a.M)*float64(a.Heads), float64(a.N), float64(a.K)
	passes := float64((a.N + c.cols - 1) / c.cols)
	co := cost{bytes: passes*m*rowBytes(t, a.K) + 4*n*(k*float64(a.Heads)+m), flops: 2 * m * n * k}
	var touched touch
	touched.read(span{a.W, a.W + uint64(m*rowBytes(t, a.K))})
	touched.read(f32s(a.X, a.N, (a.Heads-1)*a.XHead+a.K, a.XStride))
	touched.write(f32s(a.Dst, a.N, (a.Heads-1)*a.DstHead+a.M, a.DstStride))
	return record(r, &c, &a, a.Workgroups(c.rows, c.cols), &touched, co)
}
