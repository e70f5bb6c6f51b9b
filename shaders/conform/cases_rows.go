package conform

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// rowCases are the ops that reduce a row: rms_norm and soft_max.
func rowCases() []Case {
	var cases []Case
	for _, cols := range []int{1, 7, 64, 100, 127, 128, 129, 256, 1024, 4097} {
		for _, rows := range []int{1, 3, 17} {
			cases = append(cases, rmsNorm(rows, cols, 0, false, 1), softMax(rows, cols, 0.125, false))
		}
		cases = append(cases, rmsNorm(5, cols, 3, false, 1), rmsNorm(4, cols, 8, true, 1), softMax(4, cols, 3, true))
	}
	return append(cases,
		rmsNorm(3, 256, 0, false, 1e-4), // eps decides
		rmsNorm(3, 256, 0, false, 0),
		rmsNorm(70000, 8, 0, true, 1), // rows fold into y
		rmsNormSameBits(17, 1030),
		softMax(70000, 8, 1, true),
		softMaxLarge())
}

func rmsNorm(rows, cols, gap int, inPlace bool, scale float32) Case {
	return Case{
		Kernel: "rms_norm", Shape: fmt.Sprintf("rows=%d cols=%d gap=%d in place=%v scale=%g", rows, cols, gap, inPlace, scale), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			x, w := j.normal(rows, cols, gap), j.normal(1, cols, 0)
			for i := range x.Data {
				x.Data[i] *= scale
			}
			in := j.mat(x)
			dst, want := in, shape(rows, cols, gap)
			if !inPlace {
				want = shape(rows, cols, 2*gap)
				dst = j.space(want)
			}
			const eps = 1e-5
			ref.RMSNorm(want, x, w.Data, eps)
			j.output("dst", dst, want)
			a := shaders.RMSNormArgs{X: j.addr(in), W: j.addr(j.mat(w)), Dst: j.addr(dst), Rows: uint32(rows), Cols: uint32(cols),
				XStride: uint32(x.Stride), DstStride: uint32(want.Stride), Eps: eps}
			j.record = func(r *kernels.Recorder) error { return kernels.RMSNorm(r, a) }
			return nil
		},
	}
}

func rmsNormSameBits(rows, cols int) Case {
	return Case{
		Kernel: "rms_norm", Shape: fmt.Sprintf("same bits rows=%d cols=%d", rows, cols), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			gap := (4 - cols%4) % 4
			x := j.normal(rows, cols, gap)
			in, w := j.addr(j.mat(x)), j.addr(j.mat(j.normal(1, cols, 0)))
			batch, single := j.space(x), j.space(x)
			j.same("rows", batch, single, x)
			stride := uint32(x.Stride)
			runs := []shaders.RMSNormArgs{{X: in, W: w, Dst: j.addr(batch), Rows: uint32(rows), Cols: uint32(cols), XStride: stride, DstStride: stride, Eps: 1e-6}}
			for i := range rows {
				off := uint64(4 * i * x.Stride)
				runs = append(runs, shaders.RMSNormArgs{X: in + off, W: w, Dst: j.addr(single) + off, Rows: 1, Cols: uint32(cols), XStride: stride, DstStride: stride, Eps: 1e-6})
			}
			j.record = func(r *kernels.Recorder) error {
				return all(runs, func(a shaders.RMSNormArgs) error { return kernels.RMSNorm(r, a) })
			}
			return nil
		},
	}
}

func softMax(rows, cols int, scale float32, inPlace bool) Case {
	return Case{
		Kernel: "soft_max", Shape: fmt.Sprintf("rows=%d cols=%d scale=%g in place=%v", rows, cols, scale, inPlace), MaxNMSE: nmseCurved,
		build: func(j *job) error { return softMaxCase(j, j.normal(rows, cols, 0), scale, inPlace) },
	}
}

// softMaxLarge has rows that overflow exp unless the maximum is taken out, masked columns, and equal ones.
func softMaxLarge() Case {
	return Case{
		Kernel: "soft_max", Shape: "large, masked and equal values", MaxNMSE: nmseCurved,
		build: func(j *job) error {
			x := j.normal(4, 300, 0)
			for i := range x.Cols {
				x.Row(0)[i] = x.Row(0)[i]*10 + 1000
				x.Row(1)[i] = x.Row(1)[i]*10 - 1000
				if i%3 > 0 {
					x.Row(2)[i] = float32(math.Inf(-1))
				}
				x.Row(3)[i] = -7
			}
			return softMaxCase(j, x, 1, false)
		},
	}
}

func softMaxCase(j *job, x ref.Mat, scale float32, inPlace bool) error {
	want := shape(x.Rows, x.Cols, 0)
	ref.SoftMax(want, x, scale)
	in := j.mat(x)
	dst := in
	if !inPlace {
		dst = j.space(want)
	}
	j.output("dst", dst, want)
	a := shaders.SoftMaxArgs{X: j.addr(in), Dst: j.addr(dst), Rows: uint32(x.Rows), Cols: uint32(x.Cols), Scale: scale}
	j.record = func(r *kernels.Recorder) error { return kernels.SoftMax(r, a) }
	return nil
}

// pointCases are the ops of one value each: swiglu, geglu, add.
func pointCases() []Case {
	var cases []Case
	for _, count := range []int{1, 63, 64, 65, 172, 4097} {
		for _, op := range []string{"swiglu", "geglu"} {
			cases = append(cases, glu(op, count, 1), glu(op, count, 30)) // 30: exp and tanh saturate
		}
		cases = append(cases, add(count, count, false), add(3*count, count, true))
	}
	// More workgroups than one side of a grid can count.
	return append(cases, glu("swiglu", 4_200_000, 1), add(4_200_000, 1000, true))
}

func glu(op string, count int, scale float32) Case {
	return Case{
		Kernel: op, Shape: fmt.Sprintf("count=%d scale=%g", count, scale), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			gate, up, want := j.normal(1, count, 0), j.normal(1, count, 0), shape(1, count, 0)
			for i := range gate.Data {
				gate.Data[i] *= scale
			}
			if op == "swiglu" {
				ref.SwiGLU(want.Data, gate.Data, up.Data)
			} else {
				ref.GeGLU(want.Data, gate.Data, up.Data)
			}
			in := j.mat(gate) // the result takes its place, as in a feed-forward
			// 1 + tanh and exp lose all digits of a gate far below 0, whose result is next to none.
			j.sums("dst", in, want, 0.01)
			a := shaders.GLUArgs{Gate: j.addr(in), Up: j.addr(j.mat(up)), Dst: j.addr(in), Count: uint32(count)}
			j.record = func(r *kernels.Recorder) error {
				if op == "swiglu" {
					return kernels.SwiGLU(r, a)
				}
				return kernels.GeGLU(r, a)
			}
			return nil
		},
	}
}

func add(count, cols int, inPlace bool) Case {
	return Case{
		Kernel: "add", Shape: fmt.Sprintf("count=%d cols=%d in place=%v", count, cols, inPlace), MaxNMSE: nmseExact,
		build: func(j *job) error {
			x, b, want := j.normal(1, count, 0), j.normal(1, cols, 0), shape(1, count, 0)
			ref.Add(want.Data, x.Data, b.Data)
			in := j.mat(x)
			dst := in
			if !inPlace {
				dst = j.space(want)
			}
			j.output("dst", dst, want)
			a := shaders.AddArgs{A: j.addr(in), B: j.addr(j.mat(b)), Dst: j.addr(dst), Count: uint32(count), BCols: uint32(cols)}
			j.record = func(r *kernels.Recorder) error { return kernels.Add(r, a) }
			return nil
		},
	}
}

func argmaxCases() []Case {
	var cases []Case
	for _, joined := range []bool{false, true} {
		for _, cols := range []int{1000, 5003} {
			cases = append(cases, argmax("ties and NaN", 9, cols, joined, tied))
		}
		for _, cols := range []int{1, 2, 5, 63, 64, 127, 129, 2045, 2046, 4095, 4097, 151936} {
			cases = append(cases, argmax("normal", 3, cols, joined, func(ref.Mat, *job) {}))
		}
		cases = append(cases, argmax("folded", 70000, 4, joined, func(ref.Mat, *job) {}))
	}
	return append(cases, argmax("more parts than lanes", 2, 270001, true, tied), argmax("more parts than lanes", 9, 270001, true, tied))
}

// tied has rows whose greatest values are equal, none, or beside NaN and infinities.
func tied(x ref.Mat, j *job) {
	inf, nan := math.Inf(-1), math.NaN()
	for r, fill := range []struct{ most, top float64 }{{0, 1}, {-3, -2}, {inf, -1e30}, {inf, inf}, {nan, -5}, {nan, inf}, {nan, nan}, {-1e-42, 0}} {
		if r >= x.Rows {
			return
		}
		for i := range x.Cols {
			x.Row(r)[i] = float32(fill.most)
		}
		for _, i := range []int{j.rng.IntN(x.Cols), j.rng.IntN(x.Cols), x.Cols - 1} { // the top three times
			x.Row(r)[i] = float32(fill.top)
		}
	}
}

func argmax(name string, rows, cols int, joined bool, change func(ref.Mat, *job)) Case {
	kernel := "argmax"
	if joined {
		kernel = "argmax_joined"
	}
	return Case{
		Kernel: kernel, Shape: fmt.Sprintf("%s rows=%d cols=%d", name, rows, cols), MaxNMSE: nmseExact,
		build: func(j *job) error {
			x := j.normal(rows, cols, 0)
			change(x, j)
			ids := make([]uint32, rows)
			ref.Argmax(ids, x)
			var want []byte
			for _, id := range ids {
				want = binary.LittleEndian.AppendUint32(want, id)
			}
			dst := j.alloc(4 * rows)
			j.exact("dst", dst, want)
			a := shaders.ArgmaxArgs{X: j.addr(j.mat(x)), Dst: j.addr(dst), Rows: uint32(rows), Cols: uint32(cols)}
			if !joined {
				j.record = func(r *kernels.Recorder) error { return kernels.Argmax(r, a) }
				return nil
			}
			parts, counters := j.alloc(int(shaders.ArgmaxPartBytes(a.Rows, a.Cols))), j.alloc(4*rows)
			clear(j.at(counters))
			j.exact("counters", counters, make([]byte, counters.n)) // for the next step
			j.spare = append(j.spare, parts)
			j.record = func(r *kernels.Recorder) error {
				r.Parts, r.Counters = kernels.Scratch{Address: j.addr(parts), Bytes: int64(parts.n)}, kernels.Scratch{Address: j.addr(counters), Bytes: int64(counters.n)}
				return all([]shaders.ArgmaxArgs{a, a}, func(a shaders.ArgmaxArgs) error { return kernels.Argmax(r, a) }) // counters are fit for a second time
			}
			return nil
		},
	}
}

func checksumCases() []Case {
	var cases []Case
	for _, count := range []int{1, 127, 2047, 2048, 2049, 9000} {
		cases = append(cases, checksum(count))
	}
	return cases
}

func checksum(count int) Case {
	return Case{
		Kernel: "checksum", Shape: fmt.Sprintf("count=%d", count), MaxNMSE: nmseExact,
		build: func(j *job) error {
			words := make([]uint32, 4*count)
			for i := range words {
				words[i] = j.rng.Uint32()
			}
			a := shaders.ChecksumArgs{Src: j.addr(j.uint32s(words)), Count: uint32(count)}
			sums := make([]uint32, a.Workgroups())
			ref.Checksum(sums, words, shaders.ChecksumPiece)
			want := make([]byte, 0, 4*len(sums))
			for _, s := range sums {
				want = binary.LittleEndian.AppendUint32(want, s)
			}
			dst := j.alloc(len(want))
			a.Dst = j.addr(dst)
			j.exact("dst", dst, want)
			j.record = func(r *kernels.Recorder) error { return kernels.Checksum(r, a) }
			return nil
		},
	}
}
