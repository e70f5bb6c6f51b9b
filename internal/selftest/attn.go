package selftest

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// paged is one layer of a paged KV cache in a case's memory. The pages of its sequences are in random order; each page also has bytes of other layers
// before and after the layer's own.
type paged struct {
	ref.KV
	pages  []span // the pages, in the order of KV.Pages
	table  span   // (B, MaxPages) page addresses
	badKey bool   // fill stores a NaN in each key of position 0
	filled []int  // (B) number of positions of each sequence that fill has stored
}

// newPaged makes an empty cache of type t, poisoned, for the given number of sequences of maxPages pages each.
func newPaged(j *job, t gguf.Type, sequences, maxPages, pagePositions, headsKV, keyLen, valLen int) *paged {
	p := &paged{filled: make([]int, sequences), KV: ref.KV{Type: t, MaxPages: maxPages, PagePositions: pagePositions, LayerOff: 48, HeadsKV: headsKV, KeyLen: keyLen, ValLen: valLen}}
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

// fill stores random keys and values at positions 0 … length-1 of a sequence. Later positions stay poisoned, so that a kernel that reads them is caught.
func (p *paged) fill(j *job, seq, length int) {
	p.filled[seq] = length
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

// Ties, given as a scale, asks for values that test rounding: many are halfway between two values that a block of the cache can hold.
const Ties = -1

// scaled makes a random matrix whose values are multiplied by scale, or chosen for [Ties]. gap is the number of values between rows.
func (j *job) scaled(rows, cols, gap int, scale float32) ref.Mat {
	m := j.normal(rows, cols, gap)
	defer j.spoil(m)
	for i := range m.Data {
		if scale != Ties {
			m.Data[i] *= scale
		} else if m.Data[i] = float32(j.rng.IntN(253)-126) / 2; i%8 == 5 {
			m.Data[i] = float32(127 - 254*j.rng.IntN(2))
		}
	}
	return m
}

// KVAppend tests kv_append with a KV cache of type t: it stores rows of three sequences that begin in one page and end in the next. gap is the number
// of values between rows. The values are multiplied by scale, or chosen for [Ties].
func KVAppend(t gguf.Type, headsKV, keyLen, valLen, gap int, scale float32) Case {
	return Case{
		Kernel: typed("kv_append", t), Shape: fmt.Sprintf("heads=%d K=%d V=%d gap=%d scale=%g", headsKV, keyLen, valLen, gap, scale), MaxNMSE: nmseExact,
		build: func(j *job) error {
			const sequences, maxPages, pagePositions = 3, 2, 16
			p := newPaged(j, t, sequences, maxPages, pagePositions, headsKV, keyLen, valLen)
			for seq := range sequences {
				p.fill(j, seq, 10)
			}
			pos, seq := []uint32{}, []uint32{}
			for s := range uint32(sequences) { // positions on both sides of a page's border, with the sequences in turn
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

// expect adds wanted outputs: each page must become what KVAppend of the reference makes of it.
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

// AttnShape is the shape of an attention case: heads, pages of the KV cache, and options that change the scores.
type AttnShape struct {
	Heads, HeadsKV, KeyLen, ValLen int            // numbers of query and KV heads, and sizes of a key and a value
	Page                           int            // positions of a page
	Gap                            int            // values between rows of Q; twice as many between rows of the result
	Long                           int            // not 0: one sequence has 2100 positions
	Sharp                          bool           // scores are so far apart that softmax chooses one position
	Mask                           AttnMask       // which positions a row sees
	SoftCap                        float32        // bound of the scores; 0: none
	Sinks                          float32        // attention sink of the first head, other heads have larger ones; 0: no sinks
	Slopes                         float32        // ALiBi slope of the first head, other heads have smaller ones; 0: no slopes
	Split                          kernels.CMAttn // constants of flash_attn_cm; zero: the device's own
	BadKey                         bool           // each key of the first position holds a NaN, and every row sees it
}

// AttnMask says which positions a row sees. The zero AttnMask is all positions up to the row's own.
type AttnMask struct {
	Window int // the last Window of those up to the row's own; 0: no such bound
	Chunk  int // those from a multiple of Chunk on; 0: no such bound
	Ahead  int // also so many positions behind the row's own, as far as there are any
}

// of is the first and the last position that each of rows sees, by their positions and sequences in p.
func (m AttnMask) of(p *paged, pos, seq []uint32) (seen []uint32) {
	for i, at := range pos {
		first := uint32(0)
		if w := uint32(m.Window); w > 0 && at >= w {
			first = at - w + 1
		}
		if m.Chunk > 0 {
			first = at - at%uint32(m.Chunk)
		}
		seen = append(seen, first, min(at+uint32(m.Ahead), uint32(p.filled[seq[i]]-1)))
	}
	return seen
}

// width is the most positions that a row sees; 0: all from the first on.
func (m AttnMask) width() uint32 {
	switch {
	case m.Window > 0:
		return uint32(m.Window + m.Ahead)
	case m.Chunk > 0:
		return uint32(m.Chunk + m.Ahead)
	}
	return 0
}

// Holds reports whether a KV cache of type t can have heads and pages of the shape's sizes.
func (s AttnShape) Holds(t gguf.Type) bool {
	return shaders.CheckKV(t, s.KeyLen, s.ValLen) == nil && (!shaders.KVQuantised(t) || s.Page%shaders.KVPage == 0)
}

// String is the part of a case's name that describes the shape.
func (s AttnShape) String() string {
	t := fmt.Sprintf("heads=%d/%d K=%d V=%d page=%d gap=%d long=%d sharp=%v", s.Heads, s.HeadsKV, s.KeyLen, s.ValLen, s.Page, s.Gap, s.Long, s.Sharp)
	if s.Mask.Window > 0 || s.SoftCap > 0 || s.Sinks != 0 {
		t += fmt.Sprintf(" window=%d cap=%g sinks=%g", s.Mask.Window, s.SoftCap, s.Sinks)
	}
	if s.Mask.Chunk > 0 || s.Mask.Ahead > 0 || s.Slopes != 0 {
		t += fmt.Sprintf(" chunk=%d ahead=%d slopes=%g", s.Mask.Chunk, s.Mask.Ahead, s.Slopes)
	}
	if s.Split != (kernels.CMAttn{}) {
		t += fmt.Sprintf(" subgroups=%d stages=%d", s.Split.Subgroups, s.Split.Stages)
	}
	if s.BadKey {
		t += " bad key"
	}
	return t
}

// options are the shape's options for the reference.
func (s AttnShape) options() ref.FlashAttnOptions {
	o := ref.FlashAttnOptions{SoftCap: s.SoftCap}
	for h := range s.Heads {
		if s.Sinks != 0 {
			o.Sinks = append(o.Sinks, s.Sinks+float32(h)/4)
		}
		if s.Slopes != 0 {
			o.Slopes = append(o.Slopes, s.Slopes/float32(1+h))
		}
	}
	return o
}

// args are the arguments of flash_attn for rows at these positions of these sequences. The caller sets Q, Dst and their strides.
func (s AttnShape) args(j *job, p *paged, pos, seq []uint32) shaders.FlashAttnArgs {
	scale := float32(1 / math.Sqrt(float64(s.KeyLen)))
	if s.Sharp {
		scale *= 20
	}
	a := shaders.FlashAttnArgs{Pages: j.addr(p.table), Seen: j.addr(j.uint32s(s.Mask.of(p, pos, seq))), Seq: j.addr(j.uint32s(seq)),
		Rows: uint32(len(pos)), Heads: uint32(s.Heads), HeadsKV: uint32(s.HeadsKV), KeyLen: uint32(s.KeyLen), ValLen: uint32(s.ValLen),
		MaxPages: uint32(p.MaxPages), PagePositions: uint32(p.PagePositions), LayerOff: uint32(p.LayerOff), Scale: scale,
		SoftCap: s.SoftCap}
	o := s.options()
	if o.Sinks != nil {
		a.Sinks = j.addr(j.data(floatBytes(o.Sinks)))
	}
	if o.Slopes != nil {
		a.Slopes = j.addr(j.data(floatBytes(o.Slopes)))
	}
	return a
}

// wanted computes by the reference what attention of q, for rows at these positions of these sequences, must store to dst.
func (s AttnShape) wanted(dst, q ref.Mat, p *paged, pos, seq []uint32, scale float32) {
	ref.FlashAttn(dst, q, &p.KV, s.Mask.of(p, pos, seq), seq, s.Heads, scale, s.options())
}

// Attn tests flash_attn with one batch of rows of three sequences: single tokens and a chunk of a prompt, at positions on both sides of a page's
// border and of a tile of 64.
func Attn(t gguf.Type, s AttnShape) Case {
	return Case{
		Kernel: typed("flash_attn", t), Shape: s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, want := j.normal(len(pos), s.Heads*s.KeyLen, s.Gap), shape(len(pos), s.Heads*s.ValLen, 2*s.Gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			a.Q, a.Dst, a.QStride, a.DstStride = j.addr(j.mat(q)), j.addr(dst), uint32(q.Stride), uint32(want.Stride)
			s.wanted(want, q, p, pos, seq, a.Scale)
			j.output("dst", dst, want)
			j.record = func(r *kernels.Recorder) error { return kernels.FlashAttn(r, t, a) }
			return nil
		},
	}
}

// newAttnBatch fills a KV cache of three sequences, and returns the positions and sequences of the rows of [Attn].
func newAttnBatch(j *job, t gguf.Type, s AttnShape) (p *paged, pos, seq []uint32) {
	lengths := []int{1, 67, 130}
	pos = []uint32{0, 0, 1, uint32(s.Page - 1), uint32(s.Page), 62, 63, 64, 65, 66, 127, 128, 129, 40}
	seq = []uint32{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2}
	if s.Long > 0 {
		lengths[2] = 2100
		pos[12] = 2099
	}
	if s.Page > 60 { // the second sequence may be shorter than a page
		pos[3], pos[4] = 3, 4
	}
	maxPages := (lengths[2] + s.Page - 1) / s.Page
	p = newPaged(j, t, len(lengths), maxPages, s.Page, s.HeadsKV, s.KeyLen, s.ValLen)
	p.badKey = s.BadKey
	for i, n := range lengths {
		p.fill(j, i, n)
	}
	return p, pos, seq
}

// AttnSameBits tests that flash_attn gives the same bits for rows in one batch and row by row.
func AttnSameBits(t gguf.Type, s AttnShape) Case {
	size := s.KeyLen
	s.Heads, s.HeadsKV, s.ValLen, s.Page = 4, 2, size, 16
	return Case{
		Kernel: typed("flash_attn", t), Shape: "same bits " + s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, out := j.normal(len(pos), s.Heads*size, 0), shape(len(pos), s.Heads*size, 0)
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

// attnTests has the entries of kv_append and flash_attn.
var attnTests = table{
	"kv_append": {quick: func(k *shaders.Kernel) []Case {
		if shaders.KVQuantised(k.Type) {
			return []Case{KVAppend(k.Type, 2, 128, 128, 0, 1), KVAppend(k.Type, 3, 96, 64, 4, Ties)}
		}
		return []Case{KVAppend(k.Type, 2, 128, 128, 0, 1), KVAppend(k.Type, 2, 16, 8, 0, 2e-5)}
	}},
	"flash_attn": {quick: func(k *shaders.Kernel) []Case {
		cases := []Case{Attn(k.Type, AttnShape{Heads: 8, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32}), Attn(k.Type, windowed), Attn(k.Type, sloped)}
		if shaders.KVQuantised(k.Type) {
			return cases
		}
		return append([]Case{Attn(k.Type, AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 16}),
			Attn(k.Type, AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 5})}, cases...)
	}},
}

// windowed is a shape with a window, a bound of the scores, and sinks.
var windowed = AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 32, Mask: AttnMask{Window: 50}, SoftCap: 2, Sinks: 1}

// sloped is a shape whose rows also see positions behind their own, with a bound of the scores, and slopes.
var sloped = AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: AttnMask{Window: 50, Ahead: 40}, SoftCap: 2, Slopes: 0.1}
