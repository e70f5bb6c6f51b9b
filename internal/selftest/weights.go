package selftest

import (
	"fmt"
	"strings"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// typed is the name of a kernel for type t. op is the op's name, with the variant's if it has one.
func typed(op string, t gguf.Type) string { return op + "_" + strings.ToLower(t.String()) }

// weights makes a random matrix (rows, cols) of type t, whose values are about scale in size. It returns its buffer and its bytes.
func (j *job) weights(t gguf.Type, rows, cols int, scale float32) (span, []byte, error) {
	n, err := t.RowBytes(int64(cols))
	if err != nil {
		return span{}, nil, err
	}
	w := make([]byte, int(n)*rows)
	if err := quant.RandomBlocks(t, w, j.rng, scale); err != nil {
		return span{}, nil, err
	}
	if shaders.HasGrid(t) && j.grids == 0 {
		j.grids = j.addr(j.data(quant.Grids()))
	}
	return j.data(w), w, nil
}

// GetRows tests get_rows with rows more than far bytes after the table's start. That needs no large memory: the address of the start that the kernel gets is
// that far before the rows.
func GetRows(t gguf.Type, rows, cols int, scale float32, far int64) Case {
	return Case{
		Kernel: typed("get_rows", t), Shape: fmt.Sprintf("rows=%d cols=%d scale=%g far=%d", rows, cols, scale, far), MaxNMSE: nmseExact,
		build: func(j *job) error {
			const vocab = 41
			table, w, err := j.weights(t, vocab, cols, scale)
			if err != nil {
				return err
			}
			ids := make([]uint32, rows)
			for i := range ids {
				ids[i] = j.rng.Uint32N(vocab)
			}
			ids[rows-1] = vocab - 1
			want := shape(rows, cols, 0)
			if err := ref.GetRows(t, want, w, ids); err != nil {
				return err
			}
			rowBytes := int64(len(w) / vocab)
			first := far / rowBytes &^ 15 // a multiple of 16 keeps the start aligned
			for i := range ids {
				ids[i] += uint32(first)
			}
			dst := j.space(want)
			j.output("dst", dst, want)
			a := shaders.GetRowsArgs{Table: j.addr(table) - uint64(first*rowBytes), IDs: j.addr(j.uint32s(ids)), Dst: j.addr(dst), Rows: uint32(rows), Cols: uint32(cols)}
			j.record = func(r *kernels.Recorder) error { return kernels.GetRows(r, t, a) }
			return nil
		},
	}
}

// mulMatArgs returns the arguments of mul_mat for these addresses, sizes and strides.
func mulMatArgs(w, x, dst uint64, m, k, n, xStride, dstStride int) shaders.MulMatArgs {
	return shaders.MulMatArgs{W: w, X: x, Dst: dst, M: uint32(m), K: uint32(k), N: uint32(n), XStride: uint32(xStride), DstStride: uint32(dstStride)}
}

// MulMat tests products of n rows of k values with a matrix of m rows in float32: mul_mat_vec or, for more than 8 rows, mul_mat. gap is the number of values
// between rows.
func MulMat(t gguf.Type, m, k, n, gap int) Case {
	op := "mul_mat_vec"
	if n > 8 {
		op = "mul_mat"
	}
	return Case{
		Kernel: typed(op, t), Shape: fmt.Sprintf("M=%d K=%d N=%d gap=%d", m, k, n, gap), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			weights, w, err := j.weights(t, m, k, 1)
			if err != nil {
				return err
			}
			x := j.normal(n, k, gap)
			want := shape(n, m, gap)
			if err := ref.MulMat(t, want, w, x); err != nil {
				return err
			}
			dst := j.space(want)
			j.sums("dst", dst, want, float64(k))
			a := mulMatArgs(j.addr(weights), j.addr(j.mat(x)), j.addr(dst), m, k, n, x.Stride, want.Stride)
			j.record = func(r *kernels.Recorder) error { return kernels.MulMat(r, t, a) }
			return nil
		},
	}
}

// MulMatSameBits tests that products in float32 have the same bits row by row and in batches of the sizes of all tiles.
func MulMatSameBits(t gguf.Type, m, k int) Case {
	const most = 33
	return Case{
		Kernel: typed("mul_mat", t), Shape: fmt.Sprintf("same bits M=%d K=%d", m, k), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			weights, _, err := j.weights(t, m, k, 1)
			if err != nil {
				return err
			}
			x := j.normal(most, k, 0)
			at := j.addr(j.mat(x))
			gap := (4 - m%4) % 4 // each row of the result must begin on 16 bytes
			single := j.space(shape(most, m, gap))
			var runs []shaders.MulMatArgs
			for n := range most {
				runs = append(runs, mulMatArgs(j.addr(weights), at+uint64(4*n*k), j.addr(single)+uint64(4*n*(m+gap)), m, k, 1, k, m))
			}
			for _, n := range []int{2, 3, 5, 8, 9, 16, 17, most} {
				batch := j.space(shape(n, m, gap))
				j.same(fmt.Sprintf("N=%d", n), batch, single, shape(n, m, gap))
				runs = append(runs, mulMatArgs(j.addr(weights), at, j.addr(batch), m, k, n, k, m+gap))
			}
			j.record = func(r *kernels.Recorder) error {
				return all(runs, func(a shaders.MulMatArgs) error { return kernels.MulMat(r, t, a) })
			}
			return nil
		},
	}
}

// all calls record for each of runs, the arguments of one op, until the first error.
func all[T any](runs []T, record func(T) error) error {
	for _, a := range runs {
		if err := record(a); err != nil {
			return err
		}
	}
	return nil
}

// weightTests has the entries of get_rows and of products in float32.
var weightTests = table{
	"get_rows": {quick: func(k *shaders.Kernel) []Case {
		return []Case{GetRows(k.Type, 33, 256, 3e-5, 0), GetRows(k.Type, 5, 4096, 1, 5<<30)}
	}},
	"mul_mat": {quick: func(k *shaders.Kernel) []Case { return []Case{MulMat(k.Type, 65, 1024, 17, 0)} }},
	"mul_mat_vec_fp32": {quick: func(k *shaders.Kernel) []Case {
		return []Case{MulMat(k.Type, 100, 1024, 1, 0), MulMat(k.Type, 65, 1024, 8, 0)}
	}},
}
