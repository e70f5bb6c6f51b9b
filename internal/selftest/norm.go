package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// NormShape describes the rows of a norm, its weights and its options.
type NormShape struct {
	Rows, Cols int
	Gap        int     // values between rows
	Heads      int     // number of rows of weights: row i of the input has row i % Heads; 0: all rows have the same weights
	Bare       bool    // there are no weights
	Biased     bool    // a LayerNorm has biases
	InPlace    bool    // the output overwrites the input
	Mean, Size float32 // the values are Mean + Size * N(0, 1)
	Scale      float32 // factor of the output of an RMS norm; 0: 1
}

// String is the shape's name in a case's.
func (s NormShape) String() string {
	return fmt.Sprintf("rows=%d cols=%d gap=%d heads=%d bare=%t biased=%t in place=%t mean=%g size=%g scale=%g", s.Rows, s.Cols, s.Gap, s.Heads, s.Bare, s.Biased, s.InPlace, s.Mean, s.Size, s.Scale)
}

// norm is the memory of a case of a norm, see [NormShape].
type norm struct {
	x, want  ref.Mat // input, and memory for the wanted output
	in, dst  span    // memory of input and output
	w, b     ref.Mat // weights and biases; without rows: there are none
	wAt, bAt uint64  // device addresses of w and b; 0: there are none
}

// build makes the rows, weights and biases.
func (s NormShape) build(j *job) *norm {
	n := &norm{x: j.normal(s.Rows, s.Cols, s.Gap), want: shape(s.Rows, s.Cols, s.Gap)}
	for r := range s.Rows {
		for i, v := range n.x.Row(r) {
			n.x.Row(r)[i] = s.Mean + s.Size*v
		}
	}
	n.in = j.mat(n.x)
	if n.dst = n.in; !s.InPlace {
		n.want = shape(s.Rows, s.Cols, 2*s.Gap)
		n.dst = j.space(n.want)
	}
	heads := max(s.Heads, 1)
	if !s.Bare {
		n.w = j.plain(heads, s.Cols)
		n.wAt = j.addr(j.mat(n.w))
	}
	if s.Biased {
		n.b = j.plain(heads, s.Cols)
		n.bAt = j.addr(j.mat(n.b))
	}
	return n
}

// plain makes random weights of N(0, 1): a matrix without gaps, which is not spoiled as that of [job.normal] may be.
func (j *job) plain(rows, cols int) ref.Mat {
	x := shape(rows, cols, 0)
	for i := range x.Data {
		x.Data[i] = float32(j.rng.NormFloat64())
	}
	return x
}

// RMSNorm tests rms_norm.
func RMSNorm(s NormShape) Case {
	return Case{Kernel: "rms_norm", Shape: s.String(), MaxNMSE: nmseLinear, build: func(j *job) error {
		const eps = 1e-5
		n := s.build(j)
		ref.RMSNorm(n.want, n.x, n.w.Data, eps)
		if s.Scale != 0 {
			ref.Scale(n.want.Data, n.want.Data, s.Scale)
		}
		j.output("dst", n.dst, n.want)
		a := shaders.RMSNormArgs{X: j.addr(n.in), W: n.wAt, Dst: j.addr(n.dst), Rows: uint32(s.Rows), Cols: uint32(s.Cols),
			XStride: uint32(n.x.Stride), DstStride: uint32(n.want.Stride), Eps: eps, Scale: s.Scale, Heads: uint32(s.Heads)}
		j.record = func(r *kernels.Recorder) error { return kernels.RMSNorm(r, a) }
		return nil
	}}
}

// LayerNorm tests norm.
func LayerNorm(s NormShape) Case {
	return Case{Kernel: "norm", Shape: s.String(), MaxNMSE: nmseLinear, build: func(j *job) error {
		const eps = 1e-5
		n := s.build(j)
		ref.LayerNorm(n.want, n.x, n.w.Data, n.b.Data, eps)
		j.output("dst", n.dst, n.want)
		a := shaders.NormArgs{X: j.addr(n.in), W: n.wAt, B: n.bAt, Dst: j.addr(n.dst), Rows: uint32(s.Rows), Cols: uint32(s.Cols),
			XStride: uint32(n.x.Stride), DstStride: uint32(n.want.Stride), Eps: eps, Heads: uint32(s.Heads)}
		j.record = func(r *kernels.Recorder) error { return kernels.LayerNorm(r, a) }
		return nil
	}}
}

// RMSNormSameBits tests that rms_norm gives the same bits for all rows in one dispatch and row by row.
func RMSNormSameBits(rows, cols int) Case {
	return normSameBits("rms_norm", rows, cols, func(r *kernels.Recorder, a shaders.NormArgs) error {
		return kernels.RMSNorm(r, shaders.RMSNormArgs{X: a.X, W: a.W, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
	})
}

// LayerNormSameBits tests that norm gives the same bits for all rows in one dispatch and row by row.
func LayerNormSameBits(rows, cols int) Case {
	return normSameBits("norm", rows, cols, kernels.LayerNorm)
}

// normSameBits tests that a kernel of norms, which record records, gives the same bits for all rows in one dispatch and row by row.
func normSameBits(kernel string, rows, cols int, record func(*kernels.Recorder, shaders.NormArgs) error) Case {
	return Case{Kernel: kernel, Shape: fmt.Sprintf("same bits rows=%d cols=%d", rows, cols), MaxNMSE: nmseLinear, build: func(j *job) error {
		x := j.normal(rows, cols, (4-cols%4)%4)
		in, batch, single := j.addr(j.mat(x)), j.space(x), j.space(x)
		j.same("rows", batch, single, x)
		stride := uint32(x.Stride)
		whole := shaders.NormArgs{X: in, W: j.addr(j.mat(j.plain(1, cols))), Dst: j.addr(batch), Rows: uint32(rows), Cols: uint32(cols), XStride: stride, DstStride: stride, Eps: 1e-6}
		runs := []shaders.NormArgs{whole}
		for i := range rows {
			off := uint64(4 * i * x.Stride)
			one := whole
			one.X, one.Dst, one.Rows = in+off, j.addr(single)+off, 1
			runs = append(runs, one)
		}
		j.record = func(r *kernels.Recorder) error {
			return all(runs, func(a shaders.NormArgs) error { return record(r, a) })
		}
		return nil
	}}
}

// normTests has the entries of norms in float32.
var normTests = table{
	"rms_norm": {quick: func(*shaders.Kernel) []Case {
		return []Case{RMSNorm(NormShape{Rows: 4, Cols: 1024, Gap: 8, InPlace: true, Size: 1}), RMSNorm(NormShape{Rows: 17, Cols: 4097, Size: 1}), RMSNorm(NormShape{Rows: 12, Cols: 64, Heads: 3, InPlace: true, Size: 1, Scale: 0.125})}
	}},
	"norm": {quick: func(*shaders.Kernel) []Case {
		return []Case{LayerNorm(NormShape{Rows: 4, Cols: 1024, Gap: 8, InPlace: true, Biased: true, Mean: 1, Size: 1}), LayerNorm(NormShape{Rows: 17, Cols: 4097, Bare: true, Mean: 30, Size: 1})}
	}},
}
