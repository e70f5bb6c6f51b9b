package selftest

import (
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// MulMatHeads tests mul_mat_heads, which multiplies each head of X by the head's own matrix. xGap and dstGap are the numbers of values between heads of X and
// of the result.
func MulMatHeads(t gguf.Type, heads, m, k, n, xGap, dstGap int) Case {
	shapeOf := fmt.Sprintf("heads=%d M=%d K=%d N=%d gaps=%d,%d", heads, m, k, n, xGap, dstGap)
	return Case{Kernel: typed("mul_mat_heads", t), Shape: shapeOf, MaxNMSE: nmseLinear, build: func(j *job) error {
		x, want := j.normal(n, heads*(k+xGap), 0), shape(n, heads*(m+dstGap), 0)
		span, w, err := j.weights(t, heads*m, k, 1)
		if err != nil {
			return err
		}
		dst := j.mat(want) // zeros; those between heads must stay
		if err := ref.MulMatHeads(t, want, w, x, heads, m, k, k+xGap, m+dstGap); err != nil {
			return err
		}
		j.sums("dst", dst, want, float64(k)/2)
		a := headArgs(heads, m, k, n, xGap, dstGap)
		a.W, a.X, a.Dst = j.addr(span), j.addr(j.mat(x)), j.addr(dst)
		j.record = func(r *kernels.Recorder) error { return kernels.MulMatHeads(r, t, a) }
		return nil
	}}
}

// headArgs are the arguments of mul_mat_heads. The caller sets W, X and Dst.
func headArgs(heads, m, k, n, xGap, dstGap int) shaders.MulMatHeadsArgs {
	return shaders.MulMatHeadsArgs{
		M: uint32(m), K: uint32(k), N: uint32(n), Heads: uint32(heads), XHead: uint32(k + xGap), DstHead: uint32(m + dstGap),
		XStride: uint32(heads * (k + xGap)), DstStride: uint32(heads * (m + dstGap)),
	}
}

// MulMatHeadsSameBits tests that mul_mat_heads gives the same bits for all rows in one dispatch and row by row.
func MulMatHeadsSameBits(t gguf.Type, heads, m, k, n int) Case {
	return Case{Kernel: typed("mul_mat_heads", t), Shape: fmt.Sprintf("same bits heads=%d M=%d K=%d", heads, m, k), MaxNMSE: nmseLinear, build: func(j *job) error {
		gap := (4 - m%4) % 4
		x, out := j.normal(n, heads*k, 0), shape(n, heads*(m+gap), 0)
		span, _, err := j.weights(t, heads*m, k, 1)
		if err != nil {
			return err
		}
		batch, single := j.mat(out), j.mat(out)
		j.same("rows", batch, single, out)
		a := headArgs(heads, m, k, n, 0, gap)
		a.W, a.X, a.Dst = j.addr(span), j.addr(j.mat(x)), j.addr(batch)
		runs := []shaders.MulMatHeadsArgs{a}
		for i := range n {
			one := a
			one.N, one.X, one.Dst = 1, a.X+uint64(4*i*x.Stride), j.addr(single)+uint64(4*i*out.Stride)
			runs = append(runs, one)
		}
		j.record = func(r *kernels.Recorder) error {
			return all(runs, func(a shaders.MulMatHeadsArgs) error { return kernels.MulMatHeads(r, t, a) })
		}
		return nil
	}}
}

// headTests has the entry of mul_mat_heads.
var headTests = table{"mul_mat_heads": {quick: func(k *shaders.Kernel) []Case { return []Case{MulMatHeads(k.Type, 4, 65, 1024, 3, 8, 16)} }}}
