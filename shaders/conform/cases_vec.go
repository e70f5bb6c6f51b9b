package conform

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// vecCases are the variants of mul_mat_vec whose lanes work in teams, and what makes their input.
func vecCases() []Case {
	var cases []Case
	for _, k := range []int{32, 64, 96, 288, 1024, 4096} {
		cases = append(cases, quantizeQ8(1, k, 0, 1), quantizeQ8(7, k, 5, 1))
	}
	cases = append(cases, quantizeQ8(3, 256, 0, 0), quantizeQ8(3, 256, 0, 1e-30), quantizeQ8(3, 256, 0, 1e30))
	for _, k := range shaders.Kernels() {
		if k.Op != "mul_mat_vec" || k.Variant == shaders.FP32 || k.Variant == shaders.Turned {
			continue
		}
		row := &k
		if k.Variant == shaders.Straight {
			cases = append(cases, straightCases(row)...)
			continue
		}
		if k.Variant == shaders.Persistent {
			cases = append(cases, persistentCases(row)...)
			continue
		}
		for _, cols := range vecLengths(k.Type) {
			for _, m := range []int{1, 7, 100} {
				cases = append(cases, vec(row, m, cols, 1, 0, kernels.Tile{}))
			}
		}
		long := vecLengths(k.Type)[1]
		for n := 2; n <= 8; n++ {
			cases = append(cases, vec(row, 65, long, n, 4, kernels.Tile{}))
		}
		// Each tile is a pipeline, which lavapipe takes long to compile; what they change is the same for all types.
		cases = append(cases, vec(row, 37, 2048+long, 1, 0, kernels.Tile{Rows: 4, Team: 16, Unroll: 2, Lanes: 64}))
		if slices.Contains([]gguf.Type{gguf.F16, gguf.Q4_K, gguf.Q6_K}, row.Type) {
			for _, tile := range []kernels.Tile{{Rows: 1, Team: 8, Unroll: 1, Lanes: 32}, {Rows: 3, Team: 32, Unroll: 4, Lanes: 64}, {Rows: 2, Team: 64, Unroll: 1, Lanes: 128}} {
				cases = append(cases, vec(row, 37, 1024, 1, 0, tile), vec(row, 37, 2048+long, 3, 0, tile))
			}
		}
		if row.Variant != shaders.Wide {
			cases = append(cases, vecExtremes(row))
		}
		cases = append(cases, vec(row, 65, 1024, 8, 0, kernels.Tile{}), vecSameBits(row, 33, 1024), vecSameBits(row, 5, 4096))
	}
	return cases
}

// straightCases have rows that end within a lane's share, and teams of one subgroup and of several. They are few: code without loops
// takes lavapipe a second to compile.
func straightCases(row *shaders.Kernel) []Case {
	cases := []Case{vecExtremes(row), vecSameBits(row, 33, 1024), vec(row, 1, 512, 1, 0, kernels.Tile{}), vec(row, 100, 1024, 1, 0, kernels.Tile{}),
		vec(row, 37, 5632, 1, 0, kernels.Tile{}), vec(row, 65, 1024, 8, 0, kernels.Tile{}), vec(row, 65, 1024, 3, 4, kernels.Tile{})}
	for _, tile := range []kernels.Tile{{Rows: 1, Team: 8, Unroll: 4, Lanes: 32}, {Rows: 3, Team: 32, Unroll: 2, Lanes: 64}, {Rows: 2, Team: 64, Unroll: 2, Lanes: 64}} {
		cases = append(cases, vec(row, 37, 1024, 1, 0, tile), vec(row, 300, 512, 3, 0, tile))
	}
	for _, n := range []int{1, 3} {
		cases = append(cases, siblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), siblings(row, [3]int{64, 1, 0}, 512, n, kernels.Tile{}), residual(row, 65, 512, n, kernels.Tile{}),
			gates(row, 65, 512, n, false, kernels.Tile{}), gates(row, 96, 512, n, true, kernels.Tile{}))
	}
	return append(cases, gatesSameBits(row))
}

// persistentCases have rows that end within a lane's share, teams of a part of a subgroup and of several, more turns than one, and
// more columns than a workgroup has.
func persistentCases(row *shaders.Kernel) []Case {
	cases := []Case{vecExtremes(row), vecSameBits(row, 33, 1024), vecSameBits(row, 5, 4096), vec(row, 1, 256, 1, 0, kernels.Tile{}), vec(row, 100, 768, 1, 0, kernels.Tile{}),
		vec(row, 37, 5632, 1, 0, kernels.Tile{}), vec(row, 65, 1024, 8, 0, kernels.Tile{}), vec(row, 65, 1024, 3, 4, kernels.Tile{})}
	if slices.Contains([]gguf.Type{gguf.Q4_K, gguf.Q6_K}, row.Type) {
		for _, tile := range []kernels.Tile{{Team: 8, Lanes: 32}, {Rows: 2, Team: 16, Lanes: 64}, {Team: 64}} {
			cases = append(cases, vec(row, 37, 1024, 1, 0, tile), vec(row, 1100, 512, 3, 0, tile))
		}
		cases = append(cases, vec(row, 900, 256, 1, 0, kernels.Tile{}), vec(row, 900, 256, 11, 4, kernels.Tile{}), siblings(row, [3]int{900, 1, 0}, 256, 1, kernels.Tile{}), residual(row, 900, 256, 3, kernels.Tile{}),
			gates(row, 32*17, 256, 1, true, kernels.Tile{}))
	}
	for _, n := range []int{1, 3} {
		cases = append(cases, siblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), residual(row, 65, 512, n, kernels.Tile{}), gates(row, 65, 512, n, false, kernels.Tile{}), gates(row, 96, 512, n, true, kernels.Tile{}),
			gates(row, 96, 2048, n, true, kernels.Tile{Team: 64}))
	}
	return append(cases, gatesSameBits(row))
}

// vecLengths are multiples of what the kernels' widest loads need.
func vecLengths(t gguf.Type) []int {
	switch t.BlockSize() {
	case 1:
		return []int{8, 264, 1024, 4096}
	case 32:
		return []int{32, 288, 1024, 4096}
	}
	return []int{256, 768, 1024, 4096}
}

func quantizeQ8(rows, cols, gap int, scale float32) Case {
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

// want8 compares blocks of bytes by what they stand for: a device may divide otherwise in the last bit and so round
// a value in the middle the other way. Their sums must be those of its own bytes.
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

// q8 puts a quantised matrix where kernels read it: bytes, scales.
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

// product is one mul_mat_vec of a job: its weights and X, for as many columns as one likes.
type product struct {
	row       *shaders.Kernel
	m, k      int
	bytes     []byte  // of the weights as GGUF has them
	x         ref.Mat // (N, K)
	q8        *ref.Q8 // x in bytes; nil where the kernel takes floats
	w, xAt, s uint64  // addresses
}

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

func (p *product) reference(dst ref.Mat) error {
	if p.q8 != nil {
		return ref.MulMatInt8(p.row.Type, dst, p.bytes, p.q8)
	}
	return ref.MulMat(p.row.Type, dst, p.bytes, p.x)
}

// record multiplies n rows of X from the given one on.
func (p *product) record(r *kernels.Recorder, from, n int, dst uint64, stride int) error {
	a := shaders.MulMatTeamArgs{W0: p.w, X: p.xAt + uint64(from*p.k), S: p.s + uint64(from*p.k/4), Dst0: dst, M0: uint32(p.m), K: uint32(p.k), N: uint32(n), DstStride: uint32(stride)}
	if p.q8 == nil {
		a.X, a.S, a.XStride = p.xAt+uint64(4*from*p.x.Stride), 0, uint32(p.x.Stride)
	}
	return multiplyTeam(r, p.row, shaders.NoGLU, a)
}

// tileName is what a case's shape ends with where it has constants of its own.
func tileName(t kernels.Tile) string {
	if t == (kernels.Tile{}) {
		return ""
	}
	return fmt.Sprintf(" tile=%dx%dx%dx%d", t.Rows, t.Team, t.Unroll, t.Lanes)
}

func vec(row *shaders.Kernel, m, k, n, gap int, tile kernels.Tile) Case {
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
				r.Tile = tile
				return p.record(r, 0, n, at, want.Stride)
			}
			return nil
		},
	}
}

// vecSameBits multiplies rows one by one, then in batches: one value, to the bit.
func vecSameBits(row *shaders.Kernel, m, k int) Case {
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

// quants are where a block keeps its weights' integers: bytes from one up to another.
var quants = map[gguf.Type][2]int{
	gguf.Q4_0: {2, 18}, gguf.Q4_1: {4, 20}, gguf.Q5_0: {2, 22}, gguf.Q5_1: {4, 24}, gguf.Q8_0: {2, 34},
	gguf.Q2_K: {16, 80}, gguf.Q3_K: {0, 96}, gguf.Q4_K: {16, 144}, gguf.Q5_K: {16, 176}, gguf.Q6_K: {0, 192},
	gguf.IQ4_NL: {2, 18}, gguf.IQ4_XS: {8, 136}, gguf.MXFP4: {1, 17},
}

// vecExtremes multiplies the largest and smallest integers there are, all of one sign or in turn: partial sums must hold them.
func vecExtremes(row *shaders.Kernel) Case {
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
			size, at := row.Type.BlockBytes(), quants[row.Type]
			for r, fill := range fills {
				for b := r * len(w) / m; b < (r+1)*len(w)/m; b += size {
					for i := at[0]; i < at[1]; i++ {
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
