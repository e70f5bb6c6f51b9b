package conform

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

var kvTypes = shaders.KVTypes

// holds reports whether a cache of type t can be made of such a shape.
func (s attnShape) holds(t gguf.Type) bool {
	return shaders.CheckKV(t, s.keyLen, s.valLen) == nil && (!shaders.KVQuantised(t) || s.page%shaders.KVPage == 0)
}

func ropeCases() []Case {
	var cases []Case
	for _, neox := range []bool{false, true} {
		for _, size := range []int{8, 16, 32, 40, 64, 80, 96, 128, 256} {
			cases = append(cases, rope(5, 3, size, size, 0, neox))
		}
		cases = append(cases,
			rope(1, 1, 64, 64, 0, neox), rope(33, 8, 128, 128, 256, neox),
			rope(7, 4, 64, 32, 0, neox), rope(7, 4, 80, 20, 3, neox)) // part of the head only
	}
	return cases
}

func rope(rows, heads, headDim, ropeDim, gap int, neox bool) Case {
	return Case{
		Kernel: "rope", Shape: fmt.Sprintf("rows=%d heads=%d head=%d rope=%d gap=%d neox=%v", rows, heads, headDim, ropeDim, gap, neox), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			x := j.normal(rows, heads*headDim, gap)
			angles := shape(rows, ropeDim, 0) // (T, Dr/2, 2)
			for r := range rows {
				pos := float64(j.rng.IntN(100000))
				for i := range ropeDim / 2 {
					a := pos * math.Pow(10000, -2*float64(i)/float64(ropeDim))
					angles.Row(r)[2*i], angles.Row(r)[2*i+1] = float32(math.Cos(a)), float32(math.Sin(a))
				}
			}
			in := j.mat(x)
			ref.Rope(x, angles.Data, headDim, ropeDim, neox)
			j.output("x", in, x)
			a := shaders.RopeArgs{X: j.addr(in), CosSin: j.addr(j.mat(angles)), Rows: uint32(rows), Heads: uint32(heads),
				HeadDim: uint32(headDim), RopeDim: uint32(ropeDim), XStride: uint32(x.Stride)}
			if neox {
				a.Neox = 1
			}
			j.record = func(r *kernels.Recorder) error { return kernels.Rope(r, a) }
			return nil
		},
	}
}

// paged is a cache of several sequences whose pages lie in no order, between other layers of the same pages.
type paged struct {
	ref.KV
	pages  []span
	table  span // (B, MaxPages) page addresses
	badKey bool // the keys of position 0 that fill stores hold NaN; no value does
}

func newPaged(j *job, t gguf.Type, sequences, maxPages, pagePositions, headsKV, keyLen, valLen int) *paged {
	p := &paged{KV: ref.KV{Type: t, MaxPages: maxPages, PagePositions: pagePositions, LayerOff: 48, HeadsKV: headsKV, KeyLen: keyLen, ValLen: valLen}}
	count := sequences * maxPages
	p.Table = j.rng.Perm(count)
	for range count {
		s := j.alloc(p.LayerOff + p.LayerBytes() + 32)
		p.pages = append(p.pages, s)
		p.Pages = append(p.Pages, j.at(s))
	}
	addrs := make([]uint64, count)
	for i, page := range p.Table {
		addrs[i] = j.addr(p.pages[page])
	}
	p.table = j.uint64s(addrs)
	return p
}

// fill stores random keys and values at positions 0 … length-1 of a sequence; what lies behind stays poisoned.
func (p *paged) fill(j *job, seq, length int) {
	pos, seqs := make([]uint32, length), make([]uint32, length)
	for i := range pos {
		pos[i], seqs[i] = uint32(i), uint32(seq)
	}
	k, v := j.normal(length, p.HeadsKV*p.KeyLen, 0), j.normal(length, p.HeadsKV*p.ValLen, 0)
	for head := range p.HeadsKV {
		if p.badKey {
			k.Row(0)[head*p.KeyLen+j.rng.IntN(p.KeyLen)] = float32(math.NaN())
		}
	}
	ref.KVAppend(&p.KV, k, v, pos, seqs)
}

func kvAppendCases() []Case {
	var cases []Case
	for _, t := range kvTypes {
		for _, size := range []int{8, 32, 40, 64, 96, 128, 160, 256} {
			if shaders.CheckKV(t, size, size) == nil {
				cases = append(cases, kvAppend(t, 2, size, size, 0, 1))
			}
		}
		key, val := 16, 8
		if shaders.KVQuantised(t) {
			key, val = 64, 32
			cases = append(cases, kvAppend(t, 3, 96, 64, 4, ties))
		}
		cases = append(cases, kvAppend(t, 1, 64, 128, 4, 1), kvAppend(t, 8, 128, 64, 12, 1),
			kvAppend(t, 2, key, val, 0, 1e-7), kvAppend(t, 2, key, val, 0, 2e-5), kvAppend(t, 2, key, val, 0, 4e4), // subnormal, at F16's edges, infinite
			kvAppend(t, 2, key, val, 0, 0))
	}
	return cases
}

// ties, as a scale, asks for values of which many lie in the middle of two that a block can hold.
const ties = -1

// scaled makes values of a scale.
func (j *job) scaled(rows, cols, gap int, scale float32) ref.Mat {
	m := j.normal(rows, cols, gap)
	defer j.spoil(m)
	for i := range m.Data {
		if scale != ties {
			m.Data[i] *= scale
		} else if m.Data[i] = float32(j.rng.IntN(253)-126) / 2; i%8 == 5 {
			m.Data[i] = float32(127 - 254*j.rng.IntN(2))
		}
	}
	return m
}

func kvAppend(t gguf.Type, headsKV, keyLen, valLen, gap int, scale float32) Case {
	return Case{
		Kernel: typed("kv_append", t), Shape: fmt.Sprintf("heads=%d K=%d V=%d gap=%d scale=%g", headsKV, keyLen, valLen, gap, scale), MaxNMSE: nmseExact,
		build: func(j *job) error {
			const sequences, maxPages, pagePositions = 3, 2, 16
			p := newPaged(j, t, sequences, maxPages, pagePositions, headsKV, keyLen, valLen)
			for seq := range sequences {
				p.fill(j, seq, 10)
			}
			pos, seq := []uint32{}, []uint32{}
			for s := range uint32(sequences) { // over a page's border, the sequences taking turns
				for i := range uint32(9) {
					pos, seq = append(pos, 10+i), append(seq, (s+i)%sequences)
				}
			}
			k, v := j.scaled(len(pos), headsKV*keyLen, gap, scale), j.scaled(len(pos), headsKV*valLen, 2*gap, scale)
			a := shaders.KVAppendArgs{K: j.addr(j.mat(k)), V: j.addr(j.mat(v)), Pages: j.addr(p.table), Pos: j.addr(j.uint32s(pos)), Seq: j.addr(j.uint32s(seq)),
				Rows: uint32(len(pos)), HeadsKV: uint32(headsKV), KeyLen: uint32(keyLen), ValLen: uint32(valLen),
				MaxPages: maxPages, PagePositions: pagePositions, LayerOff: uint32(p.LayerOff), KStride: uint32(k.Stride), VStride: uint32(v.Stride)}
			p.expect(j, k, v, pos, seq)
			j.record = func(r *kernels.Recorder) error { return kernels.KVAppend(r, t, a) }
			return nil
		},
	}
}

// expect says that every page must become what KVAppend of the reference makes of it.
func (p *paged) expect(j *job, k, v ref.Mat, pos, seq []uint32) {
	after := p.KV
	after.Pages = make([][]byte, len(p.Pages))
	for i, b := range p.Pages {
		after.Pages[i] = append([]byte(nil), b...)
	}
	ref.KVAppend(&after, k, v, pos, seq)
	for i, s := range p.pages {
		j.exact(fmt.Sprintf("page %d", i), s, after.Pages[i])
	}
}

func attnCases() []Case {
	var cases []Case
	for _, t := range kvTypes {
		var shapes []attnShape
		for _, size := range []int{8, 16, 32, 40, 64, 80, 96, 128, 160, 256} {
			shapes = append(shapes, attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16})
		}
		for _, ratio := range []int{1, 2, 4, 8} {
			shapes = append(shapes, attnShape{heads: 8, headsKV: 8 / ratio, keyLen: 64, valLen: 64, page: 32})
		}
		shapes = append(shapes,
			attnShape{heads: 2, headsKV: 1, keyLen: 64, valLen: 128, page: 16},
			attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 96, page: 16, gap: 4},
			attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 40, page: 16, gap: 4},
			attnShape{heads: 2, headsKV: 1, keyLen: 512, valLen: 512, page: 16},
			attnShape{heads: 2, headsKV: 1, keyLen: 576, valLen: 512, page: 16},
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 5}, // borders anywhere
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 12},
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 256, long: 1}, // long context
			attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sharp: true})
		for _, s := range append(shapes, optionShapes...) {
			if s.holds(t) {
				cases = append(cases, attn(t, s))
			}
		}
		cases = append(cases, attnSameBits(t, attnShape{keyLen: 64}), attnSameBits(t, attnShape{keyLen: 128}), attnSameBits(t, attnShape{keyLen: 64, window: 40, softCap: 5, sinks: 1}))
	}
	return cases
}

// optionShapes have windows that begin inside of a tile of 64, at its border and before all there is, caps that change most
// scores, and sinks below and above all scores.
var optionShapes = []attnShape{
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 1},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 30},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 64},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 65},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 66},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, window: 500},
	{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 256, long: 1, window: 700},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, softCap: 0.5},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sharp: true, softCap: 30},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sinks: -2},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sinks: 12},
	{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sharp: true, sinks: 500},
	{heads: 4, headsKV: 2, keyLen: 128, valLen: 128, page: 32, window: 50, softCap: 2, sinks: 1},
}

type attnShape struct {
	heads, headsKV, keyLen, valLen int
	page                           int // positions
	gap                            int
	long                           int
	sharp                          bool // scores so far apart that one position wins
	window                         int
	softCap                        float32
	sinks                          float32        // of the first head, more for the others; 0: none
	split                          kernels.CMAttn // of flash_attn_cm; zero: the device's own
	badKey                         bool           // the first key holds NaN, and every row sees it
}

func (s attnShape) String() string {
	t := fmt.Sprintf("heads=%d/%d K=%d V=%d page=%d gap=%d long=%d sharp=%v", s.heads, s.headsKV, s.keyLen, s.valLen, s.page, s.gap, s.long, s.sharp)
	if s.window > 0 || s.softCap > 0 || s.sinks != 0 {
		t += fmt.Sprintf(" window=%d cap=%g sinks=%g", s.window, s.softCap, s.sinks)
	}
	if s.split != (kernels.CMAttn{}) {
		t += fmt.Sprintf(" subgroups=%d stages=%d", s.split.Subgroups, s.split.Stages)
	}
	if s.badKey {
		t += " bad key"
	}
	return t
}

// options are what the reference is to make of the shape.
func (s attnShape) options() ref.FlashAttnOptions {
	o := ref.FlashAttnOptions{Window: s.window, SoftCap: s.softCap}
	for h := range s.heads {
		if s.sinks != 0 {
			o.Sinks = append(o.Sinks, s.sinks+float32(h)/4)
		}
	}
	return o
}

func (s attnShape) args(j *job, p *paged, pos, seq []uint32) shaders.FlashAttnArgs {
	scale := float32(1 / math.Sqrt(float64(s.keyLen)))
	if s.sharp {
		scale *= 20
	}
	a := shaders.FlashAttnArgs{Pages: j.addr(p.table), Pos: j.addr(j.uint32s(pos)), Seq: j.addr(j.uint32s(seq)),
		Rows: uint32(len(pos)), Heads: uint32(s.heads), HeadsKV: uint32(s.headsKV), KeyLen: uint32(s.keyLen), ValLen: uint32(s.valLen),
		MaxPages: uint32(p.MaxPages), PagePositions: uint32(p.PagePositions), LayerOff: uint32(p.LayerOff), Scale: scale,
		SoftCap: s.softCap, Window: uint32(s.window)}
	if sinks := s.options().Sinks; sinks != nil {
		a.Sinks = j.addr(j.data(floatBytes(sinks)))
	}
	return a
}

// attn runs one batch over three sequences: single tokens and a prompt chunk, at positions on either side of a page's
// border and of a tile of 64.
func attn(t gguf.Type, s attnShape) Case {
	return Case{
		Kernel: typed("flash_attn", t), Shape: s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, want := j.normal(len(pos), s.heads*s.keyLen, s.gap), shape(len(pos), s.heads*s.valLen, 2*s.gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			a.Q, a.Dst, a.QStride, a.DstStride = j.addr(j.mat(q)), j.addr(dst), uint32(q.Stride), uint32(want.Stride)
			ref.FlashAttn(want, q, &p.KV, pos, seq, s.heads, a.Scale, s.options())
			j.output("dst", dst, want)
			j.record = func(r *kernels.Recorder) error { return kernels.FlashAttn(r, t, a) }
			return nil
		},
	}
}

func newAttnBatch(j *job, t gguf.Type, s attnShape) (p *paged, pos, seq []uint32) {
	lengths := []int{1, 67, 130}
	pos = []uint32{0, 0, 1, uint32(s.page - 1), uint32(s.page), 62, 63, 64, 65, 66, 127, 128, 129, 40}
	seq = []uint32{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2}
	if s.long > 0 {
		lengths[2] = 2100
		pos[12] = 2099
	}
	if s.page > 60 { // the short sequence has but one page
		pos[3], pos[4] = 3, 4
	}
	maxPages := (lengths[2] + s.page - 1) / s.page
	p = newPaged(j, t, len(lengths), maxPages, s.page, s.headsKV, s.keyLen, s.valLen)
	p.badKey = s.badKey
	for i, n := range lengths {
		p.fill(j, i, n)
	}
	return p, pos, seq
}

// attnSameBits attends as a batch, then row by row.
func attnSameBits(t gguf.Type, s attnShape) Case {
	size := s.keyLen
	s.heads, s.headsKV, s.valLen, s.page = 4, 2, size, 16
	return Case{
		Kernel: typed("flash_attn", t), Shape: "same bits " + s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, out := j.normal(len(pos), s.heads*size, 0), shape(len(pos), s.heads*size, 0)
			in, batch, single := j.addr(j.mat(q)), j.space(out), j.space(out)
			j.same("rows", batch, single, out)
			stride := uint32(q.Stride)
			a := s.args(j, p, pos, seq)
			a.Q, a.Dst, a.QStride, a.DstStride = in, j.addr(batch), stride, stride
			runs := []shaders.FlashAttnArgs{a}
			for i := range pos {
				a := s.args(j, p, pos[i:i+1], seq[i:i+1])
				off := uint64(4 * i * q.Stride)
				a.Q, a.Dst, a.QStride, a.DstStride = in+off, j.addr(single)+off, stride, stride
				runs = append(runs, a)
			}
			j.record = func(r *kernels.Recorder) error {
				return all(runs, func(a shaders.FlashAttnArgs) error { return kernels.FlashAttn(r, t, a) })
			}
			return nil
		},
	}
}
