package selftest

import (
	"errors"
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// RMSNormQ8 tests rms_norm_q8, with one workgroup for each row and with several, which must give the same bits. gap is the number of values between rows.
func RMSNormQ8(rows, cols, gap int) Case {
	return Case{
		Kernel: "rms_norm_q8", Shape: fmt.Sprintf("rows=%d cols=%d gap=%d", rows, cols, gap), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			const eps = 1e-5
			x, w, want := j.normal(rows, cols, gap), j.normal(1, cols, 0), shape(rows, cols, 2*gap)
			ref.RMSNorm(want, x, w.Data, eps)
			in := shaders.RMSNormQ8Args{X: j.addr(j.mat(x)), W: j.addr(j.mat(w)), Rows: uint32(rows), Cols: uint32(cols), XStride: uint32(x.Stride), DstStride: uint32(want.Stride), Eps: eps}
			outputs := func() (a shaders.RMSNormQ8Args, dst span) {
				dst, q, s := j.space(want), j.alloc(rows*cols), j.alloc(rows*cols/4)
				j.output("dst", dst, want)
				j.wants = append(j.wants, want8(ref.QuantizeQ8(want), q, s)...)
				a = in
				a.Dst, a.Q, a.S = j.addr(dst), j.addr(q), j.addr(s)
				return a, dst
			}
			alone, one := outputs()
			parts, many := outputs()
			j.same("dst by one workgroup a row and by several", one, many, want)
			j.record = func(r *kernels.Recorder) error {
				alone.Parts, parts.Parts = 1, kernels.NormParts(r, in.Cols)
				return errors.Join(kernels.RMSNormQ8(r, alone), kernels.RMSNormQ8(r, parts))
			}
			return nil
		},
	}
}

// fewRowsBuffers returns a function that sets a recorder's role to Decode and gives it the memory that steps of few rows need. Only the counters are
// compared after the run: they must be 0 again.
func fewRowsBuffers(j *job, cols, heads, valLen int) func(*kernels.Recorder) {
	bytes := j.alloc(int(2 * shaders.Q8Size(shaders.FewRows, uint32(cols))))
	parts := j.alloc(int(shaders.PartBytes(shaders.FewRows, uint32(heads), shaders.MaxParts, uint32(valLen))))
	counters := j.alloc(int(shaders.CounterBytes(shaders.FewRows, uint32(heads))))
	clear(j.at(counters))
	j.exact("counters", counters, make([]byte, counters.n)) // the next step needs zeros
	j.spare = append(j.spare, bytes, parts)
	q8, p, c := kernels.Scratch{Address: j.addr(bytes), Bytes: int64(bytes.n)}, kernels.Scratch{Address: j.addr(parts), Bytes: int64(parts.n)}, kernels.Scratch{Address: j.addr(counters), Bytes: int64(counters.n)}
	return func(r *kernels.Recorder) {
		r.Rows.Role, r.Memory.Q8, r.Memory.Parts, r.Memory.Counters = kernels.Decode, q8, p, c
	}
}

// AttnFew tests attention of up to 4 rows at a time, as in steps of few rows: by flash_attn_split and flash_attn_join or, with joined, by
// flash_attn_joined.
func AttnFew(t gguf.Type, s AttnShape, joined bool) Case {
	kernel := "flash_attn_split"
	if joined {
		kernel = "flash_attn_joined"
	}
	return Case{
		Kernel: typed(kernel, t), Shape: s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, want := j.normal(len(pos), s.Heads*s.KeyLen, s.Gap), shape(len(pos), s.Heads*s.ValLen, 2*s.Gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			s.wanted(want, q, p, pos, seq, a.Scale)
			j.output("dst", dst, want)
			in, prepare := j.addr(j.mat(q)), fewRowsBuffers(j, s.Heads*s.ValLen, s.Heads, s.ValLen)
			j.record = func(r *kernels.Recorder) error {
				r.Rows.Window = s.Mask.width()
				if prepare(r); !joined {
					r.Memory.Counters = kernels.Scratch{}
				}
				for from := 0; from < len(pos); from += 4 { // by 4, so that positions and sequences begin on 16 bytes
					n := min(4, len(pos)-from)
					b := a
					b.Q, b.Dst, b.QStride, b.DstStride = in+uint64(4*from*q.Stride), j.addr(dst)+uint64(4*from*want.Stride), uint32(q.Stride), uint32(want.Stride)
					b.Seen, b.Seq, b.Rows = a.Seen+uint64(8*from), a.Seq+uint64(4*from), uint32(n)
					if err := kernels.FlashAttn(r, t, b); err != nil {
						return err
					}
				}
				return nil
			}
			return nil
		},
	}
}

// AttnJoin tests flash_attn_join after flash_attn_split, which makes at most parts parts. The output is stored as int8 too.
func AttnJoin(s AttnShape, parts int) Case {
	return Case{
		Kernel: "flash_attn_join", Shape: fmt.Sprintf("%s parts=%d", s, parts), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, gguf.F16, s)
			pos, seq = pos[:13], seq[:13]
			q, want := j.normal(len(pos), s.Heads*s.KeyLen, 0), shape(len(pos), s.Heads*s.ValLen, 0)
			a := s.args(j, p, pos, seq)
			s.wanted(want, q, p, pos, seq, a.Scale)
			dst, bytes, sums := j.space(want), j.alloc(len(want.Data)), j.alloc(len(want.Data)/4)
			j.output("dst", dst, want)
			j.wants = append(j.wants, want8(ref.QuantizeQ8(want), bytes, sums)...)
			room := j.alloc(int(shaders.PartBytes(a.Rows, a.Heads, uint32(parts), a.ValLen)))
			j.spare = append(j.spare, room)
			split := shaders.FlashAttnSplitArgs{Q: j.addr(j.mat(q)), Parts: j.addr(room), Pages: a.Pages, Seen: a.Seen, Seq: a.Seq,
				Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
				LayerOff: a.LayerOff, QStride: uint32(q.Stride), MaxParts: uint32(parts), Scale: a.Scale, SoftCap: a.SoftCap}
			if a.Slopes != 0 {
				split.PerHead, split.Slopes = a.Slopes, 1
			}
			join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Seen: a.Seen, Dst: j.addr(dst), Q: j.addr(bytes), S: j.addr(sums),
				Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: split.MaxParts, DstStride: uint32(want.Stride), Sinks: a.Sinks}
			j.record = func(r *kernels.Recorder) error {
				if err := kernels.FlashAttnSplit(r, gguf.F16, a.Heads/a.HeadsKV, split); err != nil {
					return err
				}
				return kernels.FlashAttnJoin(r, join)
			}
			return nil
		},
	}
}

// AttnJoined tests that flash_attn_joined, with workgroups of each possible number of heads, gives the same bits as flash_attn_split and flash_attn_join. There
// are at most parts parts. The output of flash_attn_joined is stored as int8 too.
func AttnJoined(s AttnShape, parts int) Case {
	return Case{
		Kernel: typed("flash_attn_joined", gguf.F16), Shape: fmt.Sprintf("joins %s parts=%d", s, parts), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, gguf.F16, s)
			pos, seq = pos[:13], seq[:13]
			q, out := j.normal(len(pos), s.Heads*s.KeyLen, 0), shape(len(pos), s.Heads*s.ValLen, 0)
			a := s.args(j, p, pos, seq)
			shared := uint32(s.Heads / s.HeadsKV)
			room := j.alloc(int(shaders.PartBytes(a.Rows, a.Heads, uint32(parts), a.ValLen)))
			counters := j.alloc(int(shaders.CounterBytes(a.Rows, a.Heads)))
			clear(j.at(counters))
			j.exact("counters", counters, make([]byte, counters.n))
			j.spare = append(j.spare, room)
			split := shaders.FlashAttnSplitArgs{Q: j.addr(j.mat(q)), Parts: j.addr(room), Pages: a.Pages, Seen: a.Seen, Seq: a.Seq,
				Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
				LayerOff: a.LayerOff, QStride: uint32(q.Stride), DstStride: uint32(out.Stride), MaxParts: uint32(parts), Scale: a.Scale, SoftCap: a.SoftCap}
			if a.Slopes != 0 {
				split.PerHead, split.Slopes = a.Slopes, 1
			}
			dst := j.space(out)
			bytes := j.alloc(int(shaders.Q8Size(a.Rows, a.Heads*a.ValLen)))
			sums := int(shaders.Q8Sums(0, a.Rows, a.Heads*a.ValLen))
			s.wanted(out, q, p, pos, seq, a.Scale)
			j.wants = append(j.wants, want8(ref.QuantizeQ8(out), span{bytes.off, sums}, span{bytes.off + sums, bytes.n - sums})...)
			var alone [shaders.MaxGroup + 1]shaders.FlashAttnSplitArgs // by number of heads in a workgroup; 0 rows: the number does not divide the heads
			for g := uint32(1); g <= min(shared, shaders.MaxGroup); g++ {
				if shared%g != 0 {
					continue
				}
				again := j.space(out)
				j.same(fmt.Sprintf("dst by %d heads", g), dst, again, out)
				alone[g] = split
				alone[g].Counters, alone[g].Dst, alone[g].Bytes = j.addr(counters), j.addr(again), j.addr(bytes)
				if a.Sinks != 0 {
					alone[g].PerHead = a.Sinks
				}
			}
			join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Seen: a.Seen, Dst: j.addr(dst),
				Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: split.MaxParts, DstStride: split.DstStride, Sinks: a.Sinks}
			j.record = func(r *kernels.Recorder) error {
				if err := kernels.FlashAttnSplit(r, gguf.F16, min(shared, shaders.MaxGroup), split); err != nil {
					return err
				}
				if err := kernels.FlashAttnJoin(r, join); err != nil {
					return err
				}
				for g, a := range alone {
					for range 2 { // the second time checks that the counters are 0 again
						if err := kernels.FlashAttnSplit(r, gguf.F16, uint32(g), a); err != nil {
							return err
						}
					}
				}
				return nil
			}
			return nil
		},
	}
}

// AttnFewSameBits tests that flash_attn_joined gives the same bits for 4 rows together and for each row alone.
func AttnFewSameBits(t gguf.Type, s AttnShape) Case {
	size := s.KeyLen
	s.Heads, s.HeadsKV, s.ValLen, s.Page = 4, 2, size, 16
	return Case{
		Kernel: typed("flash_attn_joined", t), Shape: "same bits " + s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			pos, seq = pos[9:13], seq[9:13]
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
			prepare := fewRowsBuffers(j, s.Heads*size, s.Heads, size)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				return all(runs, func(a shaders.FlashAttnArgs) error {
					if r.Rows.Positions = 0; a.Rows == 1 { // as in a step with only short contexts
						r.Rows.Positions = min(1024, a.MaxPages*a.PagePositions)
					}
					return kernels.FlashAttn(r, t, a)
				})
			}
			return nil
		},
	}
}

// fewTests has the entries of rms_norm_q8 and of attention of few rows.
var fewTests = table{
	"rms_norm_q8": {
		quick: func(*shaders.Kernel) []Case { return []Case{RMSNormQ8(7, 4096, 4)} },
		proofs: func(v *kernels.Variant) []Case {
			run := int(v.Lanes) * 4
			return []Case{RMSNormQ8(2, int(v.Per-1)*run+32, 4), RMSNormQ8(1, int(v.Per)*run, 0)}
		},
	},
	"flash_attn_split":  {quick: func(k *shaders.Kernel) []Case { return quickFew(k, false) }, proofs: fewProofs},
	"flash_attn_joined": {quick: func(k *shaders.Kernel) []Case { return quickFew(k, true) }, proofs: fewProofs},
	"flash_attn_join": {
		quick: func(*shaders.Kernel) []Case {
			return []Case{AttnJoin(AttnShape{Heads: 4, HeadsKV: 1, KeyLen: 64, ValLen: 128, Page: 32, Long: 1}, shaders.MaxParts)}
		},
		proofs: func(*kernels.Variant) []Case {
			return []Case{AttnJoin(AttnShape{Heads: 4, HeadsKV: 4, KeyLen: 64, ValLen: 64, Page: 32}, shaders.MaxParts),
				AttnJoin(AttnShape{Heads: 4, HeadsKV: 4, KeyLen: 64, ValLen: 64, Page: 32, Mask: AttnMask{Window: 50}, Sinks: 1}, shaders.MaxParts)}
		},
	},
}

// quickFew returns the quick cases of attention of few rows: with joined by flash_attn_joined, else by two kernels.
func quickFew(k *shaders.Kernel, joined bool) []Case {
	shared := AttnFew(k.Type, AttnShape{Heads: 16, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32}, joined)
	switch {
	case k.Type == gguf.F32:
		return []Case{AttnFew(k.Type, AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sharp: true}, joined)}
	case shaders.KVQuantised(k.Type):
		return []Case{shared, AttnFew(k.Type, windowed, joined)}
	case !joined:
		return []Case{AttnFew(k.Type, AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 16}, joined), shared}
	}
	return []Case{shared, AttnFew(k.Type, AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 256, Long: 1}, joined), AttnFew(k.Type, windowed, joined), AttnFew(k.Type, sloped, joined),
		AttnJoined(AttnShape{Heads: 8, HeadsKV: 1, KeyLen: 64, ValLen: 128, Page: 32, Long: 1}, shaders.MaxParts)}
}

// fewProofs returns the proofs of a pipeline of attention of few rows: a plain shape with the pipeline's constants, and one with a window, a bound of the
// scores, and sinks, and one with chunks and slopes.
func fewProofs(v *kernels.Variant) []Case {
	joined := v.Row.Variant == shaders.Joined
	s := AttnShape{Heads: 2 * int(v.Group), HeadsKV: 2, KeyLen: int(v.KeyLen), ValLen: int(v.ValLen), Page: 9 * int(v.Run)} // so that no larger run divides a page
	if shaders.KVQuantised(v.Row.Type) && s.Page%shaders.KVPage != 0 {
		s.Page *= shaders.KVPage
	}
	masked := s
	masked.Mask.Window, masked.SoftCap, masked.Sinks = 50, 2, 1
	leaning := s
	leaning.Mask.Chunk, leaning.Slopes = 48, 0.1
	return []Case{AttnFew(v.Row.Type, s, joined), AttnFew(v.Row.Type, masked, joined), AttnFew(v.Row.Type, leaning, joined)}
}
