package conform

import (
	"fmt"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

func headCases() []Case {
	var cases []Case
	for _, t := range quant.Types() {
		k := rowLengths(t)[2]
		cases = append(cases, mulMatHeads(t, 3, 7, k, 1, 0, 0), mulMatHeads(t, 4, 65, 1024, 3, 8, 16), mulMatHeads(t, 2, 20, k, 17, 4, 0), mulMatHeadsSameBits(t, 3, 9, k, 11))
	}
	return append(cases, mulMatHeads(gguf.F16, 128, 16, 40, 2, 0, 4), mulMatHeads(gguf.F32, 5, 6, 37, 9, 3, 1))
}

// mulMatHeads has gaps of so many values behind each head of X and of Dst.
func mulMatHeads(t gguf.Type, heads, m, k, n, xGap, dstGap int) Case {
	shapeOf := fmt.Sprintf("heads=%d M=%d K=%d N=%d gaps=%d,%d", heads, m, k, n, xGap, dstGap)
	return Case{Kernel: typed("mul_mat_heads", t), Shape: shapeOf, MaxNMSE: nmseLinear, build: func(j *job) error {
		x, want := j.normal(n, heads*(k+xGap), 0), shape(n, heads*(m+dstGap), 0)
		span, w, err := j.weights(t, heads*m, k, 1)
		if err != nil {
			return err
		}
		dst := j.mat(want) // zeros, and so they stay between heads
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

func headArgs(heads, m, k, n, xGap, dstGap int) shaders.MulMatHeadsArgs {
	return shaders.MulMatHeadsArgs{
		M: uint32(m), K: uint32(k), N: uint32(n), Heads: uint32(heads), XHead: uint32(k + xGap), DstHead: uint32(m + dstGap),
		XStride: uint32(heads * (k + xGap)), DstStride: uint32(heads * (m + dstGap)),
	}
}

// mulMatHeadsSameBits multiplies all rows at once, then row by row.
func mulMatHeadsSameBits(t gguf.Type, heads, m, k, n int) Case {
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
