package selftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// VecRopeShape is the shape of a case of mul_mat_vec_rope: it computes Q, K and V, or some of them, rotates Q and K by RoPE, and stores K and V in a KV cache.
type VecRopeShape struct {
	Heads, HeadsKV  int       // numbers of query and KV heads
	Key, Val, Turns int       // sizes of a key and a value, and number of values of a key that RoPE rotates
	Neox            bool      // RoPE pairs value i with i + Turns/2, not with i + 1
	KV              gguf.Type // type of the KV cache
	Parts           string    // which of Q, K and V are computed: "qkv", or some of these letters
	K, N            int       // columns of the matrices, and rows of X
}

// String is the part of a case's name that describes the shape.
func (s VecRopeShape) String() string {
	return fmt.Sprintf("%s heads=%d/%d key=%d val=%d turns=%d neox=%v kv=%v K=%d N=%d", s.Parts, s.Heads, s.HeadsKV, s.Key, s.Val, s.Turns, s.Neox, s.KV, s.K, s.N)
}

// rows is the numbers of rows of the matrices of Q, K and V; 0 for those that are not in Parts.
func (s VecRopeShape) rows() [3]int {
	rows := [3]int{s.Heads * s.Key, s.HeadsKV * s.Key, s.HeadsKV * s.Val}
	for i, part := range "qkv" {
		if !slices.Contains([]rune(s.Parts), part) {
			rows[i] = 0
		}
	}
	return rows
}

// turning returns the constants of mul_mat_vec_rope for the shape.
func (s VecRopeShape) turning() kernels.RopeConstants {
	return kernels.RopeConstants{KeyLen: uint32(s.Key), ValLen: uint32(s.Val), RopeDim: uint32(s.Turns), Neox: s.Neox, CacheF32: s.KV == gguf.F32}
}

// angles returns the cosines and sines of RoPE for rows at these positions. turns is the number of values that RoPE rotates.
func angles(pos []uint32, turns int) ref.Mat {
	m := shape(len(pos), turns, 0)
	for r, p := range pos {
		for i := range turns / 2 {
			a := float64(p) * math.Pow(10000, -2*float64(i)/float64(turns))
			m.Row(r)[2*i], m.Row(r)[2*i+1] = float32(math.Cos(a)), float32(math.Sin(a))
		}
	}
	return m
}

// turnedJob is what all cases of mul_mat_vec_rope share.
type turnedJob struct {
	args shaders.MulMatRopeArgs // arguments without Dst and Seq
	y    [3]ref.Mat             // the reference's Q, K and V, before RoPE
	p    *paged                 // the KV cache
	pos  []uint32               // position of each row
	cos  ref.Mat                // cosines and sines of RoPE for each row
}

const turnedPages, turnedPage = 2, 16 // pages of a sequence, and positions of a page

// newTurned makes X, weights, biases for all but K, and a KV cache for so many sequences. row is the kernel's row in the shaders' table: it sets the type of
// the weights and the format of X.
func newTurned(j *job, row *shaders.Kernel, s VecRopeShape, sequences int) (*turnedJob, error) {
	pos := []uint32{14, 15, 16, 17, 31, 0, 1, 2}[:s.N]
	t := &turnedJob{p: newPaged(j, s.KV, sequences, turnedPages, turnedPage, s.HeadsKV, s.Key, s.Val), pos: pos, cos: angles(pos, s.Turns)}
	of := newTeam(j, row, s.K, s.N)
	t.args = shaders.MulMatRopeArgs{X: of.args.X, S: of.args.S, CosSin: j.addr(j.mat(t.cos)), Pages: j.addr(t.p.table), Pos: j.addr(j.uint32s(pos)),
		K: uint32(s.K), N: uint32(s.N), Heads: uint32(s.Heads | s.HeadsKV<<16), MaxPages: turnedPages, PagePositions: turnedPage, LayerOff: uint32(t.p.LayerOff)}
	for i, m := range s.rows() {
		if m == 0 {
			continue
		}
		at, bytes, err := j.weights(row.Type, m, s.K, 1)
		if err != nil {
			return nil, err
		}
		t.y[i] = shape(s.N, m, 0)
		if err := ref.MulMat(row.Type, t.y[i], bytes, of.x); err != nil {
			return nil, err
		}
		w, bias := j.addr(at), uint64(0)
		if i != 1 {
			b := j.normal(1, m, 0)
			ref.Add(t.y[i].Data, t.y[i].Data, b.Data)
			bias = j.addr(j.mat(b))
		}
		*[3]*uint64{&t.args.W0, &t.args.W1, &t.args.W2}[i] = w
		*[3]*uint64{&t.args.Bias0, &t.args.Bias1, &t.args.Bias2}[i] = bias
	}
	return t, nil
}

// VecRope tests mul_mat_vec_rope. In a cache of F16 a value may be rounded the other way, because sums may differ in the last bit. tile zero: the device's own.
func VecRope(row *shaders.Kernel, s VecRopeShape, tile kernels.Tile) Case {
	most := nmseLinear
	if s.KV == gguf.F16 {
		most = 1e-6
	}
	return Case{
		Kernel: row.Name, Shape: s.String() + tileName(tile), MaxNMSE: most,
		build: func(j *job) error {
			const sequences = 3
			t, err := newTurned(j, row, s, sequences)
			if err != nil {
				return err
			}
			seq := make([]uint32, s.N)
			for i := range seq {
				seq[i] = uint32(i) % sequences
			}
			t.args.Seq = j.addr(j.uint32s(seq))
			for i := range 2 {
				if t.y[i].Rows > 0 {
					ref.Rope(t.y[i], t.cos.Data, s.Key, s.Turns, s.Neox)
				}
			}
			if q := t.y[0]; q.Rows > 0 {
				dst := j.space(q)
				j.sums("q", dst, q, float64(s.K))
				t.args.Dst = j.addr(dst)
			}
			for i := 1; i < 3; i++ {
				for r := range t.y[i].Rows {
					for h := range s.HeadsKV {
						wantCached(j, t.p, i == 2, h, int(seq[r]), int(t.pos[r]), t.y[i].Row(r), float64(s.K))
					}
				}
			}
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				return kernels.MulMatRope(r, row.Type, s.turning(), t.args)
			}
			return nil
		},
	}
}

// wantCached adds a wanted output: a head's key (or value, with values) at a position of a sequence, in a cache of F32 or F16. row has the keys or values of
// all heads; power is as in [job.sums].
func wantCached(j *job, p *paged, values bool, head, seq, pos int, row []float32, power float64) {
	size, n, off := 4, p.KeyLen, p.LayerOff
	if p.Type == gguf.F16 {
		size = 2
	}
	if values {
		n, off = p.ValLen, off+p.HeadsKV*p.PagePositions*p.KeyLen*size
	}
	off += (head*p.PagePositions + pos%p.PagePositions) * n * size
	at := span{p.pages[p.Table[seq*p.MaxPages+pos/p.PagePositions]].off + off, n * size}
	w := want{name: fmt.Sprintf("head %d of position %d of sequence %d, values %v", head, pos, seq, values), at: at, mat: shape(1, n, 0), power: power}
	copy(w.mat.Data, row[head*n:])
	if p.Type == gguf.F16 {
		for i, v := range w.mat.Data {
			w.mat.Data[i] = quant.F16ToF32(quant.F32ToF16(v))
		}
		w.decode = func(got []byte) (ref.Mat, error) {
			x := shape(1, n, 0)
			for i := range x.Data {
				x.Data[i] = quant.F16ToF32(binary.LittleEndian.Uint16(got[at.off+2*i:]))
			}
			return x, nil
		}
	}
	j.wants = append(j.wants, w)
}

// VecRopeSameBits tests that mul_mat_vec_rope gives the same bits for rows together, into one sequence, and for each row alone, into another.
func VecRopeSameBits(row *shaders.Kernel, s VecRopeShape) Case {
	return Case{
		Kernel: row.Name, Shape: "same bits " + s.String(), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t, err := newTurned(j, row, s, 2)
			if err != nil {
				return err
			}
			together, alone := t.twins(j)
			runs := []shaders.MulMatRopeArgs{t.args}
			runs[0].Dst, runs[0].Seq = j.addr(together), j.addr(j.uint32s(make([]uint32, s.N)))
			for i := range s.N {
				one := t.args
				one.N, one.Dst = 1, j.addr(alone)+uint64(4*i*s.Heads*s.Key)
				one.X, one.S, one.CosSin = one.X+uint64(i*s.K), one.S+uint64(i*s.K/4), one.CosSin+uint64(4*i*s.Turns)
				one.Pos, one.Seq = j.addr(j.uint32s(t.pos[i:i+1])), j.addr(j.uint32s([]uint32{1}))
				runs = append(runs, one)
			}
			j.record = func(r *kernels.Recorder) error {
				return all(runs, func(a shaders.MulMatRopeArgs) error { return kernels.MulMatRope(r, row.Type, s.turning(), a) })
			}
			return nil
		},
	}
}

// twins makes two buffers for Q, and wants the same bits in both, and in the cache's pages of sequences 0 and 1.
func (t *turnedJob) twins(j *job) (a, b span) {
	a, b = j.space(t.y[0]), j.space(t.y[0])
	j.same("q", a, b, t.y[0])
	t.p.fill(j, 0, turnedPages*turnedPage)
	for i := range turnedPages {
		a, b := t.p.pages[t.p.Table[i]], t.p.pages[t.p.Table[turnedPages+i]]
		copy(j.at(b), j.at(a))
		j.sameBytes(fmt.Sprintf("page %d", i), span{a.off + t.p.LayerOff, t.p.LayerBytes()}, span{b.off + t.p.LayerOff, t.p.LayerBytes()})
	}
	return a, b
}

// VecRopeAlike tests that mul_mat_vec_rope gives the same bits as the mul_mat_vec of the kernel plain, then rope_kv. It holds if the compiler keeps the order of
// sums of the source. tile zero: the device's own.
func VecRopeAlike(row, plain *shaders.Kernel, s VecRopeShape, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: "alike " + s.String() + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t, err := newTurned(j, row, s, 2)
			if err != nil {
				return err
			}
			fused, apart := t.twins(j)
			a, rows := t.args, s.rows()
			a.Dst, a.Seq = j.addr(fused), j.addr(j.uint32s(make([]uint32, s.N)))
			one := make([]uint32, s.N)
			for i := range one {
				one[i] = 1
			}
			k, v := j.space(t.y[1]), j.space(t.y[2])
			j.spare = append(j.spare, k, v)
			product := shaders.MulMatTeamArgs{W0: a.W0, W1: a.W1, W2: a.W2, Bias0: a.Bias0, Bias1: a.Bias1, Bias2: a.Bias2, X: a.X, S: a.S, K: a.K, N: a.N,
				Dst0: j.addr(apart), Dst1: j.addr(k), Dst2: j.addr(v), M0: uint32(rows[0]), M1: uint32(rows[1]), M2: uint32(rows[2]), DstStride: uint32(rows[0])}
			rope := shaders.RopeKVArgs{Q: j.addr(apart), K: j.addr(k), V: j.addr(v), CosSin: a.CosSin, Pages: a.Pages, Pos: a.Pos, Seq: j.addr(j.uint32s(one)), Rows: a.N, Heads: uint32(s.Heads), HeadsKV: uint32(s.HeadsKV),
				KeyLen: uint32(s.Key), ValLen: uint32(s.Val), RopeDim: uint32(s.Turns), MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff, QStride: product.M0, KStride: product.M1, VStride: product.M2}
			if s.Neox {
				rope.Neox = 1
			}
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				if err := kernels.MulMatRope(r, row.Type, s.turning(), a); err != nil {
					return err
				}
				if err := kernels.MulMatTeam(r, plain.Variant, row.Type, shaders.NoGLU, product); err != nil {
					return err
				}
				return kernels.RopeKV(r, s.KV, rope)
			}
			return nil
		},
	}
}

// turnedProofs returns the proofs of a pipeline of mul_mat_vec_rope, which it must pass before it is used. Both have more than one workgroup: one has Q, K and
// V, the other only V, with rows so long that lanes compute several chunks, but not all the same number.
func turnedProofs(v *kernels.Variant) []Case {
	t, tile := &v.Rope, v.Tile
	block := max(32, v.Row.Type.BlockSize())
	s := VecRopeShape{Heads: 2, HeadsKV: 1, Key: int(t.KeyLen), Val: int(t.ValLen), Turns: int(t.RopeDim), Neox: t.Neox, KV: gguf.F16, Parts: "qkv", K: block, N: int(v.Cols)}
	if t.CacheF32 {
		s.KV = gguf.F32
	}
	long := s
	long.Parts, long.N, long.HeadsKV, long.Heads = "v", s.N/2+1, int(v.Outputs())/s.Val+1, 0
	long.K = (32*int(tile.Team*tile.Unroll+tile.Team/2) + block) / block * block
	return []Case{VecRope(v.Row, s, tile), VecRope(v.Row, long, tile)}
}

// turnedTests has the entry of mul_mat_vec_rope.
var turnedTests = table{"mul_mat_vec_rope": {proofs: turnedProofs, quick: func(k *shaders.Kernel) []Case {
	return []Case{
		VecRope(k, VecRopeShape{Heads: 4, HeadsKV: 2, Key: 64, Val: 64, Turns: 64, Neox: true, KV: gguf.F16, Parts: "qkv", K: 512, N: 3}, kernels.Tile{}),
		VecRope(k, VecRopeShape{Heads: 3, HeadsKV: 1, Key: 80, Val: 40, Turns: 20, KV: gguf.F32, Parts: "qkv", K: 768, N: 1}, kernels.Tile{}),
	}
}}}
