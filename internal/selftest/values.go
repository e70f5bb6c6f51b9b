package selftest

import (
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// place returns memory for an output of x's shape: if inPlace that of the input x, at in, else other memory.
func (j *job) place(in span, x ref.Mat, inPlace bool) span {
	if inPlace {
		return in
	}
	return j.space(x)
}

// Add tests add, which adds a row of cols values to each row of count values in all, in place or to other memory.
func Add(count, cols int, inPlace bool) Case {
	return Case{
		Kernel: "add", Shape: fmt.Sprintf("count=%d cols=%d in place=%v", count, cols, inPlace), MaxNMSE: nmseExact,
		build: func(j *job) error {
			x, b, want := j.normal(1, count, 0), j.normal(1, cols, 0), shape(1, count, 0)
			ref.Add(want.Data, x.Data, b.Data)
			in := j.mat(x)
			dst := j.place(in, want, inPlace)
			j.output("dst", dst, want)
			a := shaders.AddArgs{A: j.addr(in), B: j.addr(j.mat(b)), Dst: j.addr(dst), Count: uint32(count), BCols: uint32(cols)}
			j.record = func(r *kernels.Recorder) error { return kernels.Add(r, a) }
			return nil
		},
	}
}

// AddScaled tests add_scaled, which adds factor times a matrix to another, in place or to other memory.
func AddScaled(rows, cols int, factor float32, inPlace bool) Case {
	return Case{Kernel: "add_scaled", Shape: fmt.Sprintf("rows=%d cols=%d factor=%g in place=%v", rows, cols, factor, inPlace), MaxNMSE: nmseLinear, build: func(j *job) error {
		x, b, want := j.normal(rows, cols, 0), j.normal(rows, cols, 0), shape(rows, cols, 0)
		ref.AddScaled(want.Data, x.Data, b.Data, factor)
		in := j.mat(x)
		dst := j.place(in, want, inPlace)
		j.sums("dst", dst, want, 1)
		a := shaders.AddScaledArgs{A: j.addr(in), B: j.addr(j.mat(b)), Dst: j.addr(dst), Count: uint32(rows * cols), Factor: factor}
		j.record = func(r *kernels.Recorder) error { return kernels.AddScaled(r, a) }
		return nil
	}}
}

// AddRows tests add_rows, which adds rows of a table of type t to rows of cols values.
func AddRows(t gguf.Type, rows, cols int) Case {
	return Case{Kernel: typed("add_rows", t), Shape: fmt.Sprintf("rows=%d cols=%d", rows, cols), MaxNMSE: nmseExact, build: func(j *job) error {
		const positions = 41
		table, w, err := j.weights(t, positions, cols, 1)
		if err != nil {
			return err
		}
		ids := make([]uint32, rows)
		for i := range ids {
			ids[i] = j.rng.Uint32N(positions)
		}
		ids[rows-1] = positions - 1
		want := j.normal(rows, cols, 0)
		in := j.mat(want)
		if err := ref.AddRows(t, want, w, ids); err != nil {
			return err
		}
		j.output("dst", in, want)
		a := shaders.AddRowsArgs{Table: j.addr(table), IDs: j.addr(j.uint32s(ids)), Dst: j.addr(in), Rows: uint32(rows), Cols: uint32(cols)}
		j.record = func(r *kernels.Recorder) error { return kernels.AddRows(r, t, a) }
		return nil
	}}
}

// Mul tests mul, which multiplies rows of cols values by a vector of factors values, in place or to other memory. Each value of the vector is for repeat values
// one after the other; after its last value comes its first.
func Mul(rows, cols, factors, repeat int, inPlace bool) Case {
	return Case{Kernel: "mul", Shape: fmt.Sprintf("rows=%d cols=%d factors=%d repeat=%d in place=%v", rows, cols, factors, repeat, inPlace), MaxNMSE: nmseExact, build: func(j *job) error {
		x, b, want := j.normal(rows, cols, 0), j.plain(1, factors), shape(rows, cols, 0)
		ref.Mul(want.Data, x.Data, b.Data, repeat)
		in := j.mat(x)
		dst := j.place(in, want, inPlace)
		j.output("dst", dst, want)
		a := shaders.MulArgs{A: j.addr(in), B: j.addr(j.mat(b)), Dst: j.addr(dst), Count: uint32(rows * cols), Repeat: uint32(repeat), BCount: uint32(factors)}
		j.record = func(r *kernels.Recorder) error { return kernels.Mul(r, a) }
		return nil
	}}
}

// Scale tests scale, which multiplies values by factor, in place or to other memory.
func Scale(rows, cols int, factor float32, inPlace bool) Case {
	return Case{Kernel: "scale", Shape: fmt.Sprintf("rows=%d cols=%d factor=%g in place=%v", rows, cols, factor, inPlace), MaxNMSE: nmseExact, build: func(j *job) error {
		x, want := j.normal(rows, cols, 0), shape(rows, cols, 0)
		ref.Scale(want.Data, x.Data, factor)
		in := j.mat(x)
		dst := j.place(in, want, inPlace)
		j.output("dst", dst, want)
		a := shaders.ScaleArgs{X: j.addr(in), Dst: j.addr(dst), Count: uint32(rows * cols), Factor: factor}
		j.record = func(r *kernels.Recorder) error { return kernels.Scale(r, a) }
		return nil
	}}
}

// Cpy tests cpy, which copies each row repeat times. from and to are the numbers of values between rows of the source and of the copy.
func Cpy(rows, cols, repeat, from, to int) Case {
	return Case{Kernel: "cpy", Shape: fmt.Sprintf("rows=%d cols=%d repeat=%d gaps=%d,%d", rows, cols, repeat, from, to), MaxNMSE: nmseExact, build: func(j *job) error {
		x, want := j.normal(rows, cols, from), shape(rows*repeat, cols, to)
		ref.Cpy(want, x)
		dst := j.space(want)
		j.output("dst", dst, want)
		a := shaders.CpyArgs{X: j.addr(j.mat(x)), Dst: j.addr(dst), Rows: uint32(want.Rows), Cols: uint32(cols), XStride: uint32(cols + from), DstStride: uint32(cols + to), Repeat: uint32(repeat)}
		j.record = func(r *kernels.Recorder) error { return kernels.Cpy(r, a) }
		return nil
	}}
}

// SoftCap tests soft_cap, which multiplies values by factor and bounds them by limit, in place. The values are size * N(0, 1).
func SoftCap(rows, cols int, size, factor, limit float32) Case {
	return Case{Kernel: "soft_cap", Shape: fmt.Sprintf("rows=%d cols=%d size=%g factor=%g cap=%g", rows, cols, size, factor, limit), MaxNMSE: nmseFine, build: func(j *job) error {
		x, want, in := j.values(rows, cols, 0, size)
		ref.SoftCap(want.Data, x.Data, factor, limit)
		j.output("dst", in, want)
		a := shaders.SoftCapArgs{X: j.addr(in), Dst: j.addr(in), Count: uint32(rows * cols), Factor: factor, Cap: limit}
		j.record = func(r *kernels.Recorder) error { return kernels.SoftCap(r, a) }
		return nil
	}}
}

// valueTests has the entries of sums, products and copies of single values.
var valueTests = table{
	"add":        {quick: func(*shaders.Kernel) []Case { return []Case{Add(516, 172, true), Add(4097, 4097, false)} }},
	"add_scaled": {quick: func(*shaders.Kernel) []Case { return []Case{AddScaled(3, 172, 0.22, true)} }},
	"add_rows":   {quick: func(k *shaders.Kernel) []Case { return []Case{AddRows(k.Type, 33, 173)} }},
	"mul":        {quick: func(*shaders.Kernel) []Case { return []Case{Mul(9, 172, 172, 1, true), Mul(9, 172, 9, 172, true)} }},
	"scale":      {quick: func(*shaders.Kernel) []Case { return []Case{Scale(3, 172, 27.7, true)} }},
	"cpy":        {quick: func(*shaders.Kernel) []Case { return []Case{Cpy(33, 64, 1, 128, 512), Cpy(5, 16, 4, 48, 80)} }},
	"soft_cap": {quick: func(*shaders.Kernel) []Case {
		return []Case{SoftCap(3, 509, 20, 0.25, 30), SoftCap(1, 1000, 1e-3, 1, 30)}
	}},
}
