package selftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// QuantizeQ8 tests quantize_q8, which quantises rows to blocks of int8. The values are multiplied by scale; gap is the number of values between rows.
func QuantizeQ8(rows, cols, gap int, scale float32) Case {
	return Case{
		Kernel: "quantize_q8", Shape: fmt.Sprintf("rows=%d cols=%d gap=%d scale=%g", rows, cols, gap, scale), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			x := j.normal(rows, cols, gap)
			for i := range x.Data {
				x.Data[i] *= scale
			}
			want := ref.QuantizeQ8(x)
			q, s := j.alloc(rows*cols), j.alloc(rows*cols/4)
			a := shaders.QuantizeQ8Args{X: j.addr(j.mat(x)), Q: j.addr(q), S: j.addr(s), Rows: uint32(rows), Cols: uint32(cols), XStride: uint32(x.Stride)}
			j.record = func(r *kernels.Recorder) error { return kernels.QuantizeQ8(r, a) }
			j.wants = append(j.wants, want8(want, q, s)...)
			return nil
		},
	}
}

// want8 returns the wanted outputs of int8 rows: the int8 values at q, the scales and sums at s. It compares the floats that they stand for, because a device's
// division may differ in the last bit, which rounds a value halfway between two the other way. The sums must be those of the device's own values.
func want8(w *ref.Q8, q, s span) []want {
	check := func(bytes, scales []byte) (ref.Mat, error) {
		got := &ref.Q8{Rows: w.Rows, Cols: w.Cols, Q: make([]int8, len(w.Q)), D: make([]float32, len(w.D))}
		for i := range got.Q {
			got.Q[i] = int8(bytes[i])
		}
		for b := range got.D {
			got.D[b] = floatAt(scales, 2*b)
			for half := range 2 {
				if sum := int16(binary.LittleEndian.Uint16(scales[8*b+4+2*half:])); sum != got.Sums(b, half) {
					return ref.Mat{}, fmt.Errorf("half %d of block %d is said to sum to %d, its bytes to %d", half, b, sum, got.Sums(b, half))
				}
			}
		}
		return got.Mat(), nil
	}
	return []want{{name: "q", at: q, mat: w.Mat(), decode: func(got []byte) (ref.Mat, error) {
		return check(got[q.off:q.off+q.n], got[s.off:s.off+s.n])
	}}, {name: "s", at: s, any: true}}
}

// q8 makes buffers with a quantised matrix as kernels read it: q has the int8 values, s the scales and sums.
func (j *job) q8(x *ref.Q8) (q, s span) {
	bytes, scales := make([]byte, len(x.Q)), make([]byte, 8*len(x.D))
	for i, v := range x.Q {
		bytes[i] = byte(v)
	}
	for b, d := range x.D {
		binary.LittleEndian.PutUint32(scales[8*b:], math.Float32bits(d))
		for half := range 2 {
			binary.LittleEndian.PutUint16(scales[8*b+4+2*half:], uint16(x.Sums(b, half)))
		}
	}
	return j.data(bytes), j.data(scales)
}

// product is a matrix of weights and an X of a case, with which a mul_mat_vec in teams multiplies any number of rows of X.
type product struct {
	row       *shaders.Kernel // the kernel's row in the shaders' table
	m, k      int             // rows and columns of the matrix
	bytes     []byte          // the weights, encoded as in GGUF
	x         ref.Mat         // X: (N, K)
	q8        *ref.Q8         // X quantised to int8; nil: the kernel reads floats
	w, xAt, s uint64          // addresses of the weights, of X, and of its scales and sums
}

// newProduct puts the inputs of a product into the job: random weights of m rows of k values, of the kernel's type, and a random X of n rows with gap values
// between rows. The variant Wide gets X as floats, all others get X quantized to Q8.
func newProduct(j *job, row *shaders.Kernel, m, k, n, gap int) (*product, error) {
	p := &product{row: row, m: m, k: k}
	at, bytes, err := j.weights(row.Type, m, k, 1)
	if err != nil {
		return nil, err
	}
	p.w, p.bytes = j.addr(at), bytes
	p.x = j.normal(n, k, gap)
	if row.Variant == shaders.Wide {
		p.xAt = j.addr(j.mat(p.x))
		return p, nil
	}
	p.q8 = ref.QuantizeQ8(p.x)
	q, s := j.q8(p.q8)
	p.xAt, p.s = j.addr(q), j.addr(s)
	return p, nil
}

// reference computes the product of all rows of X by the reference.
func (p *product) reference(dst ref.Mat) error {
	if p.q8 != nil {
		return ref.MulMatInt8(p.row.Type, dst, p.bytes, p.q8)
	}
	return ref.MulMat(p.row.Type, dst, p.bytes, p.x)
}

// record records the product of n rows of X, from row from on, to dst, in rows stride values apart.
func (p *product) record(r *kernels.Recorder, from, n int, dst uint64, stride int) error {
	a := shaders.MulMatTeamArgs{W0: p.w, X: p.xAt + uint64(from*p.k), S: p.s + uint64(from*p.k/4), Dst0: dst, M0: uint32(p.m), K: uint32(p.k), N: uint32(n), DstStride: uint32(stride)}
	if p.q8 == nil {
		a.X, a.S, a.XStride = p.xAt+uint64(4*from*p.x.Stride), 0, uint32(p.x.Stride)
	}
	return multiplyTeam(r, p.row, shaders.NoGLU, a)
}

// tileName is the part of a case's name that describes the tile; "" for the device's own.
func tileName(t kernels.Tile) string {
	if t == (kernels.Tile{}) {
		return ""
	}
	return fmt.Sprintf(" tile=%dx%dx%dx%d", t.Rows, t.Team, t.Unroll, t.Lanes)
}

// Vec tests the kernel row, a mul_mat_vec in teams, with n rows of k values and a matrix of m rows. gap is the number of values between rows; tile zero: the
// device's own.
func Vec(row *shaders.Kernel, m, k, n, gap int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("M=%d K=%d N=%d gap=%d", m, k, n, gap) + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			p, err := newProduct(j, row, m, k, n, gap)
			if err != nil {
				return err
			}
			want := shape(n, m, gap)
			if err := p.reference(want); err != nil {
				return err
			}
			dst := j.space(want)
			j.sums("dst", dst, want, float64(k))
			at := j.addr(dst)
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				return p.record(r, 0, n, at, want.Stride)
			}
			return nil
		},
	}
}

// VecSameBits tests that the kernel row, a mul_mat_vec in teams, gives the same bits for rows one by one and in batches.
func VecSameBits(row *shaders.Kernel, m, k int) Case {
	const most = 8
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("same bits M=%d K=%d", m, k), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			p, err := newProduct(j, row, m, k, most, 0)
			if err != nil {
				return err
			}
			gap := (4 - m%4) % 4
			single := j.space(shape(most, m, gap))
			one := j.addr(single)
			batches := map[int]uint64{}
			sizes := []int{2, 3, 5, most}
			for _, n := range sizes {
				batch := j.space(shape(n, m, gap))
				j.same(fmt.Sprintf("N=%d", n), batch, single, shape(n, m, gap))
				batches[n] = j.addr(batch)
			}
			j.record = func(r *kernels.Recorder) error {
				for n := range most {
					if err := p.record(r, n, 1, one+uint64(4*n*(m+gap)), m); err != nil {
						return err
					}
				}
				for _, n := range sizes {
					if err := p.record(r, 0, n, batches[n], m+gap); err != nil {
						return err
					}
				}
				return nil
			}
			return nil
		},
	}
}

// VecExtremes tests the kernel row, a mul_mat_vec in teams, with the largest and smallest integers that a block of weights can hold, all of one sign or
// alternating: partial sums must not overflow.
func VecExtremes(row *shaders.Kernel) Case {
	const k = 512
	return Case{
		Kernel: row.Name, Shape: "extremes", MaxNMSE: nmseLinear,
		build: func(j *job) error {
			fills := []func(i int) byte{
				func(int) byte { return 0xff }, func(int) byte { return 0 }, func(int) byte { return 0x7f }, func(int) byte { return 0x80 },
				func(i int) byte { return byte(-(i & 1)) }, func(i int) byte { return byte(0x7f + i&1) },
			}
			m := len(fills)
			_, w, err := j.weights(row.Type, m, k, 1)
			if err != nil {
				return err
			}
			size := row.Type.BlockBytes()
			first, end := quant.Integers(row.Type)
			for r, fill := range fills {
				for b := r * len(w) / m; b < (r+1)*len(w)/m; b += size {
					for i := first; i < end; i++ {
						w[b+i] = fill(i)
					}
				}
			}
			x := shape(4, k, 0)
			for i := range k {
				x.Row(0)[i], x.Row(1)[i], x.Row(2)[i], x.Row(3)[i] = 1, -1, float32(1-2*(i&1)), float32(1-i&2)
			}
			q8 := ref.QuantizeQ8(x)
			want := shape(4, m, 0)
			if err := ref.MulMatInt8(row.Type, want, w, q8); err != nil {
				return err
			}
			q, s := j.q8(q8)
			dst := j.space(want)
			j.sums("dst", dst, want, k)
			p := product{row: row, m: m, k: k, q8: q8, w: j.addr(j.data(w)), xAt: j.addr(q), s: j.addr(s)}
			to := j.addr(dst)
			j.record = func(r *kernels.Recorder) error { return p.record(r, 0, 4, to, want.Stride) }
			return nil
		},
	}
}

// vecTests has the entries of quantize_q8 and of products in teams.
var vecTests = table{
	"quantize_q8": {
		quick:  func(*shaders.Kernel) []Case { return []Case{QuantizeQ8(7, 288, 5, 1)} },
		proofs: func(*kernels.Variant) []Case { return []Case{QuantizeQ8(7, 288, 5, 1), QuantizeQ8(1, 4096, 0, 1e4)} },
	},
	"mul_mat_vec": {proofs: teamProofs, quick: func(k *shaders.Kernel) []Case {
		return []Case{Vec(k, 100, 1024, 1, 0, kernels.Tile{}), Vec(k, 65, 1024, 8, 0, kernels.Tile{})}
	}},
	"mul_mat_vec_persistent": {proofs: teamProofs, quick: func(k *shaders.Kernel) []Case {
		return []Case{Vec(k, 37, 5632, 1, 0, kernels.Tile{}), Vec(k, 65, 1024, 8, 0, kernels.Tile{}), VecGates(k, 96, 512, 1, true, kernels.Tile{})}
	}},
}
