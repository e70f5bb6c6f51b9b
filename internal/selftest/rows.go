package selftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// SoftMax tests soft_max of values multiplied by scale, in place or to other memory.
func SoftMax(rows, cols int, scale float32, inPlace bool) Case {
	return Case{
		Kernel: "soft_max", Shape: fmt.Sprintf("rows=%d cols=%d scale=%g in place=%v", rows, cols, scale, inPlace), MaxNMSE: nmseCurved,
		build: func(j *job) error { return softMaxCase(j, j.normal(rows, cols, 0), scale, inPlace) },
	}
}

// SoftMaxLarge tests soft_max with rows whose exp overflows unless the maximum is subtracted first, with masked columns, and with equal values.
func SoftMaxLarge() Case {
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

// softMaxCase fills a job for soft_max of the rows of x.
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

// tie fills the rows of x with hard cases for argmax: the largest value occurs several times, or there are NaN and infinities.
func tie(x ref.Mat, j *job) {
	inf, nan := math.Inf(-1), math.NaN()
	for r, fill := range []struct{ most, top float64 }{{0, 1}, {-3, -2}, {inf, -1e30}, {inf, inf}, {nan, -5}, {nan, inf}, {nan, nan}, {-1e-42, 0}} {
		if r >= x.Rows {
			return
		}
		for i := range x.Cols {
			x.Row(r)[i] = float32(fill.most)
		}
		for _, i := range []int{j.rng.IntN(x.Cols), j.rng.IntN(x.Cols), x.Cols - 1} { // top in up to three columns
			x.Row(r)[i] = float32(fill.top)
		}
	}
}

// Argmax tests argmax or, with joined, argmax_joined. With ties the rows are hard cases: the largest value occurs several times, or there are NaN and
// infinities. name begins the shape's name.
func Argmax(name string, rows, cols int, joined, ties bool) Case {
	kernel := "argmax"
	if joined {
		kernel = "argmax_joined"
	}
	return Case{
		Kernel: kernel, Shape: fmt.Sprintf("%s rows=%d cols=%d", name, rows, cols), MaxNMSE: nmseExact,
		build: func(j *job) error {
			x := j.normal(rows, cols, 0)
			if ties {
				tie(x, j)
			}
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
			j.exact("counters", counters, make([]byte, counters.n)) // the next step needs zeros
			j.spare = append(j.spare, parts)
			j.record = func(r *kernels.Recorder) error {
				r.Memory.Parts, r.Memory.Counters = kernels.Scratch{Address: j.addr(parts), Bytes: int64(parts.n)}, kernels.Scratch{Address: j.addr(counters), Bytes: int64(counters.n)}
				return all([]shaders.ArgmaxArgs{a, a}, func(a shaders.ArgmaxArgs) error { return kernels.Argmax(r, a) }) // the second run checks that the counters are 0 again
			}
			return nil
		},
	}
}

// Checksum tests checksum with count times 16 random bytes.
func Checksum(count int) Case {
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

// rowTests has the entries of ops on rows and single values.
var rowTests = table{
	"soft_max": {quick: func(*shaders.Kernel) []Case { return []Case{SoftMax(17, 4097, 0.125, false), SoftMaxLarge()} }},
	"checksum": {quick: func(*shaders.Kernel) []Case { return []Case{Checksum(2049)} }},
	"argmax": {quick: func(*shaders.Kernel) []Case {
		return []Case{Argmax("ties and NaN", 9, 1000, false, true), Argmax("normal", 3, 4097, false, false)}
	}},
	"argmax_joined": {
		quick: func(*shaders.Kernel) []Case {
			return []Case{Argmax("ties and NaN", 9, 5003, true, true), Argmax("normal", 3, 4097, true, false)}
		},
		proofs: func(*kernels.Variant) []Case {
			return []Case{Argmax("ties and NaN", 9, 5003, true, true), Argmax("ties and NaN", 9, 100001, true, true)}
		},
	},
}
