package conform

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/shaders"
	"leat/shaders/gpu"
	"leat/shaders/ref"
)

// turnShape is attention of single rows whose queries and new keys are turned first: RopeDim values of each, and where norms is set
// normed before that.
type turnShape struct {
	attnShape
	ropeDim     int
	norms, neox bool
}

func (s turnShape) String() string {
	return fmt.Sprintf("%s rope=%d norms=%v neox=%v", s.attnShape, s.ropeDim, s.norms, s.neox)
}

func turnedCases() []Case {
	var cases []Case
	for _, t := range shaders.KVTypesTurned {
		add := func(a attnShape, ropeDim int, norms, neox bool) {
			cases = append(cases, attnTurned(t, turnShape{a, ropeDim, norms, neox}))
		}
		for _, norms := range []bool{false, true} {
			for _, neox := range []bool{false, true} {
				add(attnShape{heads: 8, headsKV: 2, keyLen: 128, valLen: 128, page: 32}, 128, norms, neox)
				add(attnShape{heads: 3, headsKV: 1, keyLen: 80, valLen: 40, page: 16}, 20, norms, neox)
			}
		}
		shapes := append([]attnShape{
			{heads: 2, headsKV: 1, keyLen: 64, valLen: 160, page: 5},
			{heads: 16, headsKV: 2, keyLen: 64, valLen: 64, page: 32}, // two workgroups have a key head
			{heads: 4, headsKV: 1, keyLen: 128, valLen: 128, page: 32, long: 1},
			{heads: 4, headsKV: 2, keyLen: 8, valLen: 8, page: 16},
			{heads: 8, headsKV: 2, keyLen: 256, valLen: 256, page: 16}}, optionShapes...)
		if t == gguf.F16 {
			for _, size := range []int{16, 32, 96, 160} {
				shapes = append(shapes, attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16})
			}
		}
		for i, s := range shapes { // norms, and pairs that are apart, in turns
			add(s, s.keyLen, i%2 == 0, i/2%2 == 0)
		}
	}
	return cases
}

// turnedRows are positions of a sequence, one step each, the first of which is the first that the cache does not hold.
const turnedRows = 5

// attnTurned attends to rows one by one, by norms, rope, kv_append and flash_attn_joined in some sequences and by flash_attn_turned in as many others:
// to the same bits, in the cache too.
func attnTurned(t gguf.Type, s turnShape) Case {
	return Case{
		Kernel: typed("flash_attn_turned", t), Shape: s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			starts := []int{0, 61} // over borders of pages and parts
			if s.long > 0 {
				starts = []int{0, 2044}
			}
			maxPages := (starts[1]+turnedRows)/s.page + 1
			p := j.paged(t, 2*len(starts), maxPages, s.page, s.headsKV, s.keyLen, s.valLen)
			prepare := j.few(s.heads*s.valLen, s.heads, s.valLen)
			w := [2]ref.Mat{j.normal(1, s.keyLen, 0), j.normal(1, s.keyLen, 0)}
			norms := [2]uint64{j.addr(j.mat(w[0])), j.addr(j.mat(w[1]))}
			var steps []func(r *gpu.Recorder) error
			for i, start := range starts {
				p.fill(j, 2*i, start)
				for n := range maxPages {
					a, b := p.pages[p.Table[2*i*maxPages+n]], p.pages[p.Table[(2*i+1)*maxPages+n]]
					copy(j.at(b), j.at(a))
					j.sameBytes(fmt.Sprintf("page %d of sequence %d", n, 2*i+1), span{a.off + p.LayerOff, p.LayerBytes()}, span{b.off + p.LayerOff, p.LayerBytes()})
				}
				steps = append(steps, s.steps(j, p, t, uint32(2*i), start, w, norms)...)
			}
			j.record = func(r *gpu.Recorder) error {
				prepare(r)
				return all(steps, func(step func(*gpu.Recorder) error) error { return step(r) })
			}
			return nil
		},
	}
}

// steps are those of the sequence, by the plain ops, and of the next one, from position start on.
func (s turnShape) steps(j *job, p *paged, t gguf.Type, seq uint32, start int, w [2]ref.Mat, norms [2]uint64) (steps []func(*gpu.Recorder) error) {
	q, k, v := j.normal(turnedRows, s.heads*s.keyLen, 0), j.normal(turnedRows, s.headsKV*s.keyLen, 0), j.normal(turnedRows, s.headsKV*s.valLen, 0)
	q1, k1, q2, k2, vs := j.mat(q), j.mat(k), j.mat(q), j.mat(k), j.mat(v)
	j.spare = append(j.spare, q1, k1) // only the plain ops turn them
	angles, out := shape(turnedRows, s.ropeDim, 0), shape(turnedRows, s.heads*s.valLen, 0)
	dst1, dst2 := j.space(out), j.space(out)
	var pos, seqs []uint32
	for r := range turnedRows {
		pos, seqs = append(pos, uint32(start+r)), append(seqs, seq)
		for i := range s.ropeDim / 2 {
			a := float64(start+r) * math.Pow(10000, -2*float64(i)/float64(s.ropeDim))
			angles.Row(r)[2*i], angles.Row(r)[2*i+1] = float32(math.Cos(a)), float32(math.Sin(a))
		}
	}
	cs := j.mat(angles)
	for r := range turnedRows {
		at := func(b span, m ref.Mat) uint64 { return j.addr(b) + 4*uint64(r*m.Stride) }
		a := s.args(j, p, pos[r:r+1], seqs[r:r+1])
		a.Q, a.Dst, a.QStride, a.DstStride = at(q1, q), at(dst1, out), uint32(q.Stride), uint32(out.Stride)
		other := a
		other.Q, other.Dst, other.Seq = at(q2, q), at(dst2, out), j.addr(j.uint32s([]uint32{seq + 1}))
		rope := shaders.RopeKVArgs{Q: a.Q, K: at(k1, k), V: at(vs, v), CosSin: at(cs, angles), Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
			Rows: 1, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, RopeDim: uint32(s.ropeDim),
			MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff, QStride: a.QStride, KStride: uint32(k.Stride), VStride: uint32(v.Stride)}
		if s.neox {
			rope.Neox = 1
		}
		turned := rope.Normed(0, 0, 0)
		if s.norms {
			turned = rope.Normed(norms[0], norms[1], ropeEps)
		}
		turned.Q, turned.K = other.Q, at(k2, k)
		steps = append(steps, func(r *gpu.Recorder) error {
			if err := s.plain(r, t, rope, a, norms); err != nil {
				return err
			}
			return r.FlashAttnTurned(t, turned, other)
		})
	}
	j.same("dst", dst1, dst2, out)
	s.expect(p, pos, seqs, q, k, v, angles, w, out)
	j.output("dst", dst2, out)
	return steps
}

// plain records what is turned and attended to as ops of their own.
func (s turnShape) plain(r *gpu.Recorder, t gguf.Type, rope shaders.RopeKVArgs, a shaders.FlashAttnArgs, norms [2]uint64) error {
	turn := shaders.RopeArgs{CosSin: rope.CosSin, Rows: 1, HeadDim: a.KeyLen, RopeDim: rope.RopeDim, Neox: rope.Neox}
	turnQ, turnK := turn, turn
	turnQ.X, turnQ.Heads, turnQ.XStride = rope.Q, rope.Heads, rope.QStride
	turnK.X, turnK.Heads, turnK.XStride = rope.K, rope.HeadsKV, rope.KStride
	for i, x := range []shaders.RopeArgs{turnQ, turnK} {
		if s.norms {
			if err := normHeads(r, &x, norms[i]); err != nil {
				return err
			}
		}
		if err := r.Rope(x); err != nil {
			return err
		}
	}
	put := shaders.KVAppendArgs{K: rope.K, V: rope.V, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq, Rows: 1, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen,
		MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff, KStride: rope.KStride, VStride: rope.VStride}
	if err := r.KVAppend(t, put); err != nil {
		return err
	}
	group := min(a.Heads/a.HeadsKV, shaders.MaxGroup)
	return r.FlashAttnSplit(t, group, uint64(a.MaxPages*a.PagePositions), shaders.FlashAttnSplitArgs{
		Q: a.Q, Parts: r.Parts.Address, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq, Counters: r.Counters.Address, Dst: a.Dst, Sinks: a.Sinks,
		Rows: 1, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff,
		QStride: a.QStride, DstStride: a.DstStride, MaxParts: shaders.MaxParts, Scale: a.Scale, SoftCap: a.SoftCap, Window: a.Window})
}

// expect fills out with what the reference makes of the rows, over a cache of its own.
func (s turnShape) expect(p *paged, pos, seqs []uint32, q, k, v, angles ref.Mat, w [2]ref.Mat, out ref.Mat) {
	turned := [2]ref.Mat{q, k}
	for i, heads := range []int{s.heads, s.headsKV} {
		m := turned[i]
		m.Data = append([]float32(nil), m.Data...)
		each := ref.Mat{Data: m.Data, Rows: turnedRows * heads, Cols: s.keyLen, Stride: s.keyLen}
		if s.norms {
			ref.RMSNorm(each, each, w[i].Data, ropeEps)
		}
		ref.Rope(m, angles.Data, s.keyLen, s.ropeDim, s.neox)
		turned[i] = m
	}
	after := p.KV
	after.Pages = nil
	for _, b := range p.Pages {
		after.Pages = append(after.Pages, append([]byte(nil), b...))
	}
	ref.KVAppend(&after, turned[1], v, pos, seqs)
	ref.FlashAttn(out, turned[0], &after, pos, seqs, s.heads, s.scale(), s.options())
}
