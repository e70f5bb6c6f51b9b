package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// nmseHalf allows what rounding both factors to halves costs: 2^-11 each at most, evenly spread.
const nmseHalf = 4e-7

// nmseAttnHalf allows the same of a query and of weights whose scores are as large as 20 times the usual ones.
const nmseAttnHalf = 2e-5

// halvesCases are the products of many rows in halves, and what brings both sides into tiles. A device without
// cooperative matrices computes the products in float32.
func halvesCases() []Case {
	var cases []Case
	for _, t := range quant.Types() {
		lengths := rowLengths(t)
		for _, k := range []int{lengths[0], lengths[2], 1024} {
			cases = append(cases, dequantF16(t, 133, k))
		}
		cases = append(cases, mulMatHalves(t, 100, max(64, lengths[2]), 17, 4, 0), mulMatHalves(t, 300, 1024, 70, 0, 2))
	}
	for _, k := range []int{1, 64, 100, 256, 1030} {
		cases = append(cases, tileF16(3, k, 4, 1), tileF16(131, k, 0, 1e4))
	}
	cases = append(cases, tileF16(3, 128, 0, 1e30), tileF16(3, 128, 0, 1e-30), tileF16(3, 128, 0, 0))
	for _, n := range []int{17, 63, 64, 65, 127, 128, 129, 257} {
		for _, m := range []int{1, 63, 128, 129, 260} {
			cases = append(cases, mulMatHalves(gguf.Q8_0, m, 288, n, 0, 0), mulMatBlocks(gguf.Q8_0, m, 288, n, 0, kernels.CMTile{}))
		}
		cases = append(cases, mulMatHalves(gguf.Q4_K, 512, 256, n, 4, 1))
	}
	for _, t := range shaders.BlockTypes() {
		cases = append(cases, mulMatBlocks(t, 100, max(96, t.BlockSize()), 17, 4, kernels.CMTile{}), mulMatBlocks(t, 300, 1024, 70, 0, kernels.CMTile{}),
			mulMatBlocks(t, 100, 512, 40, 3, testSplits[0]),
			gatedBlocks(t, 100, 512, 40, 4, kernels.CMTile{}), gatedBlocks(t, 44, 512, 130, 0, testSplits[0]))
	}
	for _, n := range []int{100, 257} {
		for _, m := range []int{100, 260} {
			for _, split := range testSplits {
				cases = append(cases, mulMatBlocks(gguf.Q4_0, m, 288, n, 0, split))
				if !split.Halves {
					cases = append(cases, mulMatSplit(gguf.Q4_0, m, 288, n, 0, 0, split))
				}
			}
		}
	}
	return append(cases, mulMatHalves(gguf.F16, 65, 4096, 40, 5, 0), mulMatHalves(gguf.F32, 130, 172, 33, 0, 0))
}

// testSplits are no large work to compile and do with 32 KiB: two stages; X, then W, from two tiles side by side, of which the
// second may not be there; two and four lanes that decode a chunk together.
var testSplits = []kernels.CMTile{
	{BM: 64, BN: 64, WM: 32, WN: 16, BK: 32, Stages: 2, Halves: true, Wide: true},
	{BM: 64, BN: 64, WM: 32, WN: 16, BK: 32, Stages: 2},
	{BM: 64, BN: 256, WM: 32, WN: 64, BK: 32},
	{BM: 256, BN: 64, WM: 32, WN: 64, BK: 32},
	{BM: 64, BN: 64, WM: 16, WN: 16, BK: 32, Stages: 2},
	{BM: 32, BN: 128, WM: 16, WN: 16, BK: 32},
}

// tilesOf lays rows of width k out as the kernels do, poison where no row is.
func tilesOf(rows, k int, value func(r, i int) float32) []byte {
	b := make([]byte, shaders.TilesBytes(uint32(rows), uint32(k)))
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], poison)
	}
	across := (k + 63) / 64 * 2
	for r := range rows {
		for i := range across * 32 {
			v := float32(0)
			if i < k {
				v = value(r, i)
			}
			at := (r/shaders.TileRows*across+i/32)*shaders.TileRows*32 + r%shaders.TileRows*32 + i%32
			binary.LittleEndian.PutUint16(b[2*at:], quant.F32ToF16(v))
		}
	}
	return b
}

func tileF16(rows, k, gap int, size float32) Case {
	return Case{
		Kernel: "tile_f16", Shape: fmt.Sprintf("N=%d K=%d gap=%d size=%g", rows, k, gap, size), MaxNMSE: nmseExact,
		build: func(j *job) error {
			x := j.normal(rows, k, gap)
			scales := make([]float32, rows)
			for r := range rows {
				top := 0.0
				for i := range x.Row(r) {
					x.Row(r)[i] *= size
					top = max(top, math.Abs(float64(x.Row(r)[i])))
				}
				scales[r] = 1
				if top > 0 {
					_, e := math.Frexp(top) // top is below 2^e, and is to come below 2^9
					scales[r] = float32(math.Ldexp(1, max(e-9, -126)))
				}
			}
			dst, sums := j.alloc(int(shaders.TilesBytes(uint32(rows), uint32(k)))), j.alloc(4*rows)
			j.exact("dst", dst, tilesOf(rows, k, func(r, i int) float32 { return x.Row(r)[i] / scales[r] }))
			j.exact("scales", sums, floatBytes(scales))
			a := shaders.TileF16Args{X: j.addr(j.mat(x)), Dst: j.addr(dst), Scales: j.addr(sums), N: uint32(rows), K: uint32(k), XStride: uint32(x.Stride)}
			j.record = func(r *kernels.Recorder) error { return kernels.TileF16(r, a) }
			return nil
		},
	}
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return b
}

func dequantF16(t gguf.Type, rows, k int) Case {
	return Case{
		Kernel: typed("dequant_f16", t), Shape: fmt.Sprintf("M=%d K=%d", rows, k), MaxNMSE: nmseExact,
		build: func(j *job) error {
			weights, w, err := j.weights(t, rows, k, 1)
			if err != nil {
				return err
			}
			ids := make([]uint32, rows)
			for i := range ids {
				ids[i] = uint32(i)
			}
			mat := shape(rows, k, 0)
			if err := ref.GetRows(t, mat, w, ids); err != nil {
				return err
			}
			dst := j.alloc(int(shaders.TilesBytes(uint32(rows), uint32(k))))
			j.exact("dst", dst, tilesOf(rows, k, func(r, i int) float32 { return mat.Row(r)[i] }))
			a := shaders.DequantF16Args{W: j.addr(weights), Dst: j.addr(dst), M: uint32(rows), K: uint32(k)}
			j.record = func(r *kernels.Recorder) error { return kernels.DequantF16(r, t, a) }
			return nil
		},
	}
}

// mulMatHalves multiplies with room for slices tiles of weights at a time, 0 for all, and twice by the same X, which
// is brought into tiles once.
func mulMatHalves(t gguf.Type, m, k, n, gap, slices int) Case {
	return mulMatSplit(t, m, k, n, gap, slices, kernels.CMTile{})
}

func mulMatSplit(t gguf.Type, m, k, n, gap, slices int, split kernels.CMTile) Case {
	return mulMatInHalves("mul_mat_cm", fmt.Sprintf("%s M=%d K=%d N=%d gap=%d slices=%d", t, m, k, n, gap, slices)+splitName(split), t, m, k, n, gap, slices, split)
}

// mulMatBlocks multiplies by weights that are decoded in the product.
func mulMatBlocks(t gguf.Type, m, k, n, gap int, split kernels.CMTile) Case {
	return mulMatInHalves(typed("mul_mat_q_cm", t), fmt.Sprintf("M=%d K=%d N=%d gap=%d", m, k, n, gap)+splitName(split), t, m, k, n, gap, 0, split)
}

// gatedBlocks multiplies by gates and what they let through, which are decoded in the product.
func gatedBlocks(t gguf.Type, m, k, n, gap int, split kernels.CMTile) Case {
	return Case{
		Kernel: typed("mul_mat_q_cm", t), Shape: fmt.Sprintf("gates M=%d K=%d N=%d gap=%d", m, k, n, gap) + splitName(split), MaxNMSE: nmseHalf,
		build: func(j *job) error {
			x, want, through := j.normal(n, k, gap), shape(n, m, gap), shape(n, m, gap)
			var at [2]span
			for i, dst := range []ref.Mat{want, through} {
				weights, w, err := j.weights(t, m, k, 1)
				if err != nil {
					return err
				}
				at[i] = weights
				if err := ref.MulMat(t, dst, w, x); err != nil {
					return err
				}
			}
			for r := range n {
				ref.SwiGLU(want.Row(r), want.Row(r), through.Row(r))
			}
			bytes := shaders.ScratchBytes(uint32(n), uint32(k), 4*shaders.TilesBytes(uint32(m), uint32(k))+256)
			spare, dst, gate, up := j.alloc(int(bytes)), j.space(want), j.space(want), j.space(want)
			j.spare = append(j.spare, spare, gate, up)
			j.sums("dst", dst, want, float64(k))
			a := mulMatArgs(j.addr(at[0]), j.addr(j.mat(x)), j.addr(dst), m, k, n, x.Stride, want.Stride)
			j.record = func(r *kernels.Recorder) error {
				r.Scratch, r.Decoding = kernels.Scratch{Address: j.addr(spare), Bytes: bytes}, kernels.DecodeWithin
				if kernels.FitsCMTile(r, split) {
					r.CMTile = split
				}
				p := kernels.Products{Type: t, X: a.X, N: a.N, K: a.K, XStride: a.XStride, DstStride: a.DstStride, GLU: true,
					Of: [3]kernels.Matrix{{W: a.W, Dst: a.Dst, M: a.M}, {W: j.addr(at[1]), M: a.M}}}
				if done, err := kernels.Multiply(r, &p); done || err != nil {
					return err
				}
				b, c := a, a // as the plain ops do it
				b.Dst, c.W, c.Dst = j.addr(gate), j.addr(at[1]), j.addr(up)
				err := errors.Join(kernels.MulMat(r, t, b), kernels.MulMat(r, t, c))
				for i := range uint64(n) {
					off := 4 * i * uint64(want.Stride)
					err = errors.Join(err, kernels.SwiGLU(r, shaders.GLUArgs{Gate: b.Dst + off, Up: c.Dst + off, Dst: a.Dst + off, Count: uint32(m)}))
				}
				return err
			}
			return nil
		},
	}
}

// splitName is "" for the device's own.
func splitName(s kernels.CMTile) string {
	if s == (kernels.CMTile{}) {
		return ""
	}
	return " split=" + s.String()
}

func mulMatInHalves(kernel, name string, t gguf.Type, m, k, n, gap, slices int, split kernels.CMTile) Case {
	return Case{
		Kernel: kernel, Shape: name, MaxNMSE: nmseHalf,
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
			one := shaders.TilesBytes(shaders.TileRows, uint32(k))
			room := 2 * shaders.TilesBytes(uint32(m), uint32(k))
			if slices > 0 {
				room = 2 * int64(slices) * one
			}
			bytes := shaders.ScratchBytes(uint32(n), uint32(k), room+256)
			spare := j.alloc(int(bytes))
			j.spare = append(j.spare, spare)
			scratch := kernels.Scratch{Address: j.addr(spare), Bytes: bytes}
			first, second := j.space(want), j.space(want)
			j.sums("first", first, want, float64(k))
			j.sums("second", second, want, float64(k))
			before := j.normal(n, m, 0) // and added to what is there, and to what is elsewhere
			added := shape(n, m, 0)
			for r := range n {
				for i := range m {
					added.Row(r)[i] = before.Row(r)[i] + want.Row(r)[i]
				}
			}
			third, elsewhere, fourth, plain := j.mat(before), j.mat(before), j.space(added), j.space(added)
			j.spare = append(j.spare, plain)
			j.sums("what was added to", third, added, float64(k))
			j.sums("fourth", fourth, added, float64(k))
			a := mulMatArgs(j.addr(weights), j.addr(j.mat(x)), j.addr(first), m, k, n, x.Stride, want.Stride)
			b, c, d := a, a, a
			b.Dst, c.Dst, d.Dst = j.addr(second), j.addr(third), j.addr(fourth)
			c.DstStride, d.DstStride = uint32(m), uint32(m)
			j.record = func(r *kernels.Recorder) error {
				r.Scratch, r.Decoding = scratch, kernels.DecodeWithin
				if kernels.FitsCMTile(r, split) { // some are for small subgroups alone
					r.CMTile = split
				}
				if kernel == "mul_mat_cm" {
					r.Decoding = kernels.DecodeBefore
				}
				if err := all([]shaders.MulMatArgs{a, b}, func(a shaders.MulMatArgs) error { return kernels.MulMat(r, t, a) }); err != nil {
					return err
				}
				add := func(x shaders.MulMatArgs, to uint64) error {
					p := kernels.Products{Type: t, X: x.X, N: x.N, K: x.K, XStride: x.XStride, DstStride: x.DstStride, Residual: to, ResidualStride: uint32(m), Of: [3]kernels.Matrix{{W: x.W, Dst: x.Dst, M: x.M}}}
					if done, err := kernels.Multiply(r, &p); done || err != nil {
						return err
					}
					x.Dst = j.addr(plain) // as the plain ops do it, where the device lacks what that takes
					return errors.Join(kernels.MulMat(r, t, x), kernels.Add(r, shaders.AddArgs{A: to, B: x.Dst, Dst: p.Of[0].Dst, Count: uint32(n * m), BCols: uint32(n * m)}))
				}
				if err := errors.Join(add(c, c.Dst), add(d, j.addr(elsewhere))); err != nil {
					return err
				}
				return r.Finish()
			}
			return nil
		},
	}
}

// attnRunCases are rows of one sequence, which cooperative matrices attend with where a device has them.
func attnRunCases() []Case {
	var cases []Case
	for _, size := range []int{16, 64, 80, 96, 128} {
		cases = append(cases, attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 32}, 70, 0))
	}
	for _, rows := range []int{17, 63, 64, 65, 128, 200} {
		cases = append(cases,
			attnRun(gguf.F16, attnShape{heads: 8, headsKV: 2, keyLen: 64, valLen: 64, page: 32}, rows, 0),
			attnRun(gguf.F16, attnShape{heads: 2, headsKV: 2, keyLen: 128, valLen: 128, page: 64, gap: 4}, rows, 333))
	}
	cases = append(cases,
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 1, keyLen: 64, valLen: 128, page: 32}, 40, 5),
		attnRun(gguf.F16, attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 128, page: 32, sharp: true}, 100, 700),
		attnRun(gguf.F16, attnShape{heads: 2, headsKV: 1, keyLen: 128, valLen: 128, page: 32, gap: 3}, 65, 2000),
		attnRun(gguf.F16, attnShape{heads: 2, headsKV: 1, keyLen: 64, valLen: 64, page: 32, split: kernels.CMAttn{Subgroups: 6, Stages: 1}}, 200, 70),
		attnRun(gguf.F16, attnShape{heads: 2, headsKV: 1, keyLen: 64, valLen: 64, page: 32, split: kernels.CMAttn{Subgroups: 4, Stages: 2}}, 200, 70),
		attnRun(gguf.F16, attnShape{heads: 2, headsKV: 1, keyLen: 64, valLen: 64, page: 32, window: 40, softCap: 2, sinks: 1, split: kernels.CMAttn{Subgroups: 4, Stages: 2}}, 200, 70))
	for _, t := range []gguf.Type{gguf.Q8_0, gguf.Q4_0} {
		for _, size := range []int{32, 64, 96, 128} {
			cases = append(cases, attnRun(t, attnShape{heads: 4, headsKV: 2, keyLen: size, valLen: size, page: 32}, 70, 0))
		}
		cases = append(cases,
			attnRun(t, attnShape{heads: 4, headsKV: 1, keyLen: 64, valLen: 128, page: 32}, 40, 5),
			attnRun(t, attnShape{heads: 2, headsKV: 2, keyLen: 128, valLen: 128, page: 64, gap: 4}, 200, 333),
			attnRun(t, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, window: 100, softCap: 2, sinks: 1}, 65, 333))
	}
	// Windows of less than a tile of 32, of whole ones, of more than there is; each option alone is a pipeline of its own.
	for _, window := range []int{1, 31, 32, 33, 96, 1000} {
		cases = append(cases, attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, window: window}, 130, 200))
	}
	return append(cases,
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, window: 40}, 130, 0),
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, softCap: 0.5}, 70, 0),
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, sharp: true, softCap: 30}, 70, 100),
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, sinks: -2}, 70, 0),
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, sinks: 12}, 70, 100),
		attnRun(gguf.F16, attnShape{heads: 4, headsKV: 2, keyLen: 128, valLen: 128, page: 32, window: 50, softCap: 2, sinks: 1}, 100, 300))
}

// attnRun attends with rows at the positions from first on.
func attnRun(t gguf.Type, s attnShape, rows, first int) Case {
	return Case{
		Kernel: typed("flash_attn_cm", t), Shape: fmt.Sprintf("%s rows=%d first=%d", s, rows, first), MaxNMSE: nmseAttnHalf,
		build: func(j *job) error {
			pos, seq := make([]uint32, rows), make([]uint32, rows)
			for i := range pos {
				pos[i], seq[i] = uint32(first+i), 1
			}
			p := newPaged(j, t, 2, (first+rows+s.page-1)/s.page, s.page, s.headsKV, s.keyLen, s.valLen)
			p.badKey = s.badKey
			p.fill(j, 1, first+rows)
			q, want := j.normal(rows, s.heads*s.keyLen, s.gap), shape(rows, s.heads*s.valLen, 2*s.gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			a.Q, a.Dst, a.QStride, a.DstStride = j.addr(j.mat(q)), j.addr(dst), uint32(q.Stride), uint32(want.Stride)
			ref.FlashAttn(want, q, &p.KV, pos, seq, s.heads, a.Scale, s.options())
			j.output("dst", dst, want)
			j.record = func(r *kernels.Recorder) error {
				r.Run, r.CMAttn = true, s.split
				return kernels.FlashAttn(r, t, a)
			}
			return nil
		},
	}
}
