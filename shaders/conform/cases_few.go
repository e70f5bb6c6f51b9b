package conform

import (
	"errors"
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// fewCases are what steps of few rows have in one dispatch.
func fewCases() []Case {
	var cases []Case
	for _, cols := range []int{32, 288, 1024, 4096, 5120} {
		cases = append(cases, rmsNormQ8(1, cols, 0), rmsNormQ8(7, cols, 4))
	}
	for _, t := range kvTypes {
		for _, neox := range []bool{false, true} {
			if shaders.KVQuantised(t) {
				cases = append(cases, ropeKV(t, 4, 2, 64, 64, 64, neox), ropeKV(t, 8, 8, 128, 32, 128, neox), ropeKV(t, 3, 1, 96, 96, 20, neox), ropeKV(t, 6, 2, 96, 160, 96, neox))
			} else {
				cases = append(cases, ropeKV(t, 4, 2, 64, 64, 64, neox), ropeKV(t, 8, 8, 128, 40, 128, neox), ropeKV(t, 3, 1, 80, 80, 20, neox))
				cases = append(cases, ropeNormKV(t, 3, 1, 80, 40, 20, neox), ropeNormKV(t, 2, 2, 16, 8, 16, neox))
			}
			cases = append(cases, ropeNormKV(t, 4, 2, 64, 64, 64, neox), ropeNormKV(t, 8, 2, 128, 128, 128, neox), ropeNormKV(t, 3, 1, 96, 160, 20, neox), ropeNormKV(t, 2, 1, 256, 288, 64, neox), ropeNormKV(t, 2, 2, 32, 32, 32, neox))
		}
		var shapes []attnShape
		sizes := []int{8, 32, 64, 80, 96, 128, 160, 256}
		if t != gguf.F16 { // each size is a pipeline of its own, and what differs is how values are read
			sizes = []int{8, 64, 96, 256}
		}
		for _, size := range sizes {
			shapes = append(shapes, attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16})
		}
		for _, ratio := range []int{1, 3, 8, 16} {
			shapes = append(shapes, attnShape{heads: 2 * ratio, headsKV: 2, keyLen: 64, valLen: 64, page: 32})
		}
		shapes = append(shapes,
			attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 96, page: 16, gap: 4},
			attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 40, page: 16, gap: 4},
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 5},
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 12},
			attnShape{heads: 2, headsKV: 2, keyLen: 32, valLen: 32, page: 256, long: 1},
			attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16, sharp: true})
		for _, s := range append(shapes, optionShapes...) {
			if s.holds(t) {
				cases = append(cases, attnFew(t, s, true))
			}
			if s.holds(t) && (s.keyLen == 64 || s.keyLen == 128) && s.valLen == s.keyLen { // the same code, less its end
				cases = append(cases, attnFew(t, s, false))
			}
		}
		cases = append(cases, attnFewSameBits(t, attnShape{keyLen: 64}), attnFewSameBits(t, attnShape{keyLen: 64, window: 40, softCap: 5, sinks: 1}))
	}
	cases = append(cases, attnJoin(attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, long: 1, window: 1000, sinks: 3}, 3))
	for _, size := range []int{32, 64, 128, 256} {
		cases = append(cases, attnJoin(attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16}, 3),
			attnJoin(attnShape{heads: 4, headsKV: 1, keyLen: 64, valLen: size, page: 32, long: 1}, 32),
			attnAlone(attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16}, 3),
			attnAlone(attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 16, window: 50, softCap: 2, sinks: 1}, 3),
			attnAlone(attnShape{heads: 8, headsKV: 1, keyLen: 64, valLen: size, page: 32, long: 1}, 32))
	}
	for _, name := range []string{"mul_mat_vec_int8_q4_k", "mul_mat_vec_int8_q8_0", "mul_mat_vec_int8_iq4_xs", "mul_mat_vec_wide_f16"} {
		row, ok := shaders.Lookup(name)
		if !ok {
			continue // a test of the table misses it
		}
		for _, n := range []int{1, 3, 8} {
			cases = append(cases,
				siblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), siblings(row, [3]int{64, 1, 0}, 256, n, kernels.Tile{}),
				residual(row, 65, 512, n, kernels.Tile{}), gates(row, 65, 256, n, false, kernels.Tile{}), gates(row, 96, 512, n, true, kernels.Tile{}))
		}
		cases = append(cases, gates(row, 1056, 2048, 1, true, kernels.Tile{}), gatesSameBits(row))
	}
	return cases
}

func rmsNormQ8(rows, cols, gap int) Case {
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

// fewRowsBuffers gives a recorder the memory that steps of few rows need, and no promise of what is left there.
func fewRowsBuffers(j *job, cols, heads, valLen int) func(*kernels.Recorder) {
	bytes := j.alloc(int(2 * shaders.Q8Size(shaders.FewRows, uint32(cols))))
	parts := j.alloc(int(shaders.PartBytes(shaders.FewRows, uint32(heads), shaders.MaxParts, uint32(valLen))))
	counters := j.alloc(int(shaders.CounterBytes(shaders.FewRows, uint32(heads))))
	clear(j.at(counters))
	j.exact("counters", counters, make([]byte, counters.n)) // for the next step
	j.spare = append(j.spare, bytes, parts)
	q8, p, c := kernels.Scratch{Address: j.addr(bytes), Bytes: int64(bytes.n)}, kernels.Scratch{Address: j.addr(parts), Bytes: int64(parts.n)}, kernels.Scratch{Address: j.addr(counters), Bytes: int64(counters.n)}
	return func(r *kernels.Recorder) { r.Role, r.Q8, r.Parts, r.Counters = kernels.Decode, q8, p, c }
}

// attnFew attends with single rows, and with a few together, as steps of few rows do: by flash_attn_split and flash_attn_join,
// or by flash_attn_joined.
func attnFew(t gguf.Type, s attnShape, joined bool) Case {
	kernel := "flash_attn_split"
	if joined {
		kernel = "flash_attn_joined"
	}
	return Case{
		Kernel: typed(kernel, t), Shape: s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			q, want := j.normal(len(pos), s.heads*s.keyLen, s.gap), shape(len(pos), s.heads*s.valLen, 2*s.gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			ref.FlashAttn(want, q, &p.KV, pos, seq, s.heads, a.Scale, s.options())
			j.output("dst", dst, want)
			in, prepare := j.addr(j.mat(q)), fewRowsBuffers(j, s.heads*s.valLen, s.heads, s.valLen)
			j.record = func(r *kernels.Recorder) error {
				if prepare(r); !joined {
					r.Counters = kernels.Scratch{}
				}
				for from := 0; from < len(pos); from += 4 { // 16 bytes of each of the arrays of rows
					n := min(4, len(pos)-from)
					b := a
					b.Q, b.Dst, b.QStride, b.DstStride = in+uint64(4*from*q.Stride), j.addr(dst)+uint64(4*from*want.Stride), uint32(q.Stride), uint32(want.Stride)
					b.Pos, b.Seq, b.Rows = a.Pos+uint64(4*from), a.Seq+uint64(4*from), uint32(n)
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

// attnJoin cuts the positions into so many parts at most, and wants the output as bytes too.
func attnJoin(s attnShape, parts int) Case {
	return Case{
		Kernel: "flash_attn_join", Shape: fmt.Sprintf("%s parts=%d", s, parts), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, gguf.F16, s)
			pos, seq = pos[:13], seq[:13]
			q, want := j.normal(len(pos), s.heads*s.keyLen, 0), shape(len(pos), s.heads*s.valLen, 0)
			a := s.args(j, p, pos, seq)
			ref.FlashAttn(want, q, &p.KV, pos, seq, s.heads, a.Scale, s.options())
			dst, bytes, sums := j.space(want), j.alloc(len(want.Data)), j.alloc(len(want.Data)/4)
			j.output("dst", dst, want)
			j.wants = append(j.wants, want8(ref.QuantizeQ8(want), bytes, sums)...)
			room := j.alloc(int(shaders.PartBytes(a.Rows, a.Heads, uint32(parts), a.ValLen)))
			j.spare = append(j.spare, room)
			split := shaders.FlashAttnSplitArgs{Q: j.addr(j.mat(q)), Parts: j.addr(room), Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
				Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
				LayerOff: a.LayerOff, QStride: uint32(q.Stride), MaxParts: uint32(parts), Scale: a.Scale, SoftCap: a.SoftCap, Window: a.Window}
			join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Pos: a.Pos, Dst: j.addr(dst), Q: j.addr(bytes), S: j.addr(sums),
				Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: split.MaxParts, DstStride: uint32(want.Stride), Sinks: a.Sinks, Window: a.Window}
			j.record = func(r *kernels.Recorder) error {
				if err := kernels.FlashAttnSplit(r, gguf.F16, a.Heads/a.HeadsKV, 2100, split); err != nil {
					return err
				}
				return kernels.FlashAttnJoin(r, join)
			}
			return nil
		},
	}
}

// attnAlone joins parts by flash_attn_join, and where they are made, by workgroups of any number of heads: to the same bits; there
// as bytes too.
func attnAlone(s attnShape, parts int) Case {
	return Case{
		Kernel: typed("flash_attn_joined", gguf.F16), Shape: fmt.Sprintf("joins %s parts=%d", s, parts), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, gguf.F16, s)
			pos, seq = pos[:13], seq[:13]
			q, out := j.normal(len(pos), s.heads*s.keyLen, 0), shape(len(pos), s.heads*s.valLen, 0)
			a := s.args(j, p, pos, seq)
			shared := uint32(s.heads / s.headsKV)
			group := min(shared, shaders.MaxGroup)
			room := j.alloc(int(shaders.PartBytes(a.Rows, a.Heads, uint32(parts), a.ValLen)))
			counters := j.alloc(int(shaders.CounterBytes(a.Rows, a.Heads)))
			clear(j.at(counters))
			j.exact("counters", counters, make([]byte, counters.n))
			j.spare = append(j.spare, room)
			split := shaders.FlashAttnSplitArgs{Q: j.addr(j.mat(q)), Parts: j.addr(room), Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
				Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
				LayerOff: a.LayerOff, QStride: uint32(q.Stride), DstStride: uint32(out.Stride), MaxParts: uint32(parts), Scale: a.Scale, SoftCap: a.SoftCap, Window: a.Window}
			dst := j.space(out)
			bytes := j.alloc(int(shaders.Q8Size(a.Rows, a.Heads*a.ValLen)))
			sums := int(shaders.Q8Sums(0, a.Rows, a.Heads*a.ValLen))
			ref.FlashAttn(out, q, &p.KV, pos, seq, s.heads, a.Scale, s.options())
			j.wants = append(j.wants, want8(ref.QuantizeQ8(out), span{bytes.off, sums}, span{bytes.off + sums, bytes.n - sums})...)
			var alone [shaders.MaxGroup + 1]shaders.FlashAttnSplitArgs // of each group; of no rows where it divides nothing
			for g := uint32(1); g <= group; g++ {
				if shared%g != 0 {
					continue
				}
				again := j.space(out)
				j.same(fmt.Sprintf("dst by %d heads", g), dst, again, out)
				one := split
				one.Counters, one.Dst, one.Bytes, one.Sinks = j.addr(counters), j.addr(again), j.addr(bytes), a.Sinks
				alone[g] = one
			}
			join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Pos: a.Pos, Dst: j.addr(dst),
				Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: split.MaxParts, DstStride: split.DstStride, Sinks: a.Sinks, Window: a.Window}
			j.record = func(r *kernels.Recorder) error {
				if err := kernels.FlashAttnSplit(r, gguf.F16, group, 2100, split); err != nil {
					return err
				}
				if err := kernels.FlashAttnJoin(r, join); err != nil {
					return err
				}
				for g, a := range alone {
					for range 2 { // counters are fit for a second time
						if err := kernels.FlashAttnSplit(r, gguf.F16, uint32(g), 2100, a); err != nil {
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

// attnFewSameBits attends with 4 rows, then with each alone.
func attnFewSameBits(t gguf.Type, s attnShape) Case {
	size := s.keyLen
	s.heads, s.headsKV, s.valLen, s.page = 4, 2, size, 16
	return Case{
		Kernel: typed("flash_attn_joined", t), Shape: "same bits " + s.String(), MaxNMSE: nmseCurved,
		build: func(j *job) error {
			p, pos, seq := newAttnBatch(j, t, s)
			pos, seq = pos[9:13], seq[9:13]
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
			prepare := fewRowsBuffers(j, s.heads*size, s.heads, size)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				return all(runs, func(a shaders.FlashAttnArgs) error {
					if r.Positions = 0; a.Rows == 1 { // as in a step of short contexts alone
						r.Positions = min(1024, a.MaxPages*a.PagePositions)
					}
					return kernels.FlashAttn(r, t, a)
				})
			}
			return nil
		},
	}
}
