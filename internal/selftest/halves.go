package selftest

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

// nmseHalf allows for both factors being rounded to float16: errors of at most 2^-11 each, evenly spread.
const nmseHalf = 4e-7

// nmseAttnHalf allows for queries and weights being rounded to float16, with scores up to 20 times larger than usual.
const nmseAttnHalf = 2e-5

// tilesOf makes the bytes of rows of k values as tiles of float16, as kernels store them: zeros after column k, poison in place of rows past the last.
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

// TileF16 tests tile_f16, which converts rows of k values to tiles of float16 and divides each row by a power of 2, so that it fits. The values are multiplied
// by size; gap is the number of values between rows.
func TileF16(rows, k, gap int, size float32) Case {
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
					_, e := math.Frexp(top) // top is below 2^e; the scale brings it below 2^9
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

// floatBytes returns the bytes of float32 values, little-endian.
func floatBytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return b
}

// DequantF16 tests dequant_f16, which decodes weights of type t, in rows of k values, into tiles of float16.
func DequantF16(t gguf.Type, rows, k int) Case {
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

// MulMatHalves tests mul_mat_cm, twice with the same X, which is converted to tiles only once, and twice with a residual. slices is the number of slices of
// decoded weights that the memory holds at a time; 0: all. gap is the number of values between rows.
func MulMatHalves(t gguf.Type, m, k, n, gap, slices int) Case {
	return MulMatHalvesTile(t, m, k, n, gap, slices, kernels.CMTile{})
}

// MulMatHalvesTile is MulMatHalves with the tile split; zero: the device's own.
func MulMatHalvesTile(t gguf.Type, m, k, n, gap, slices int, split kernels.CMTile) Case {
	return mulMatInHalves("mul_mat_cm", fmt.Sprintf("%s M=%d K=%d N=%d gap=%d slices=%d", t, m, k, n, gap, slices)+splitName(split), t, m, k, n, gap, slices, split)
}

// MulMatBlocks tests mul_mat_q_cm, which decodes the weights within the product, with the tile split; zero: the device's own.
func MulMatBlocks(t gguf.Type, m, k, n, gap int, split kernels.CMTile) Case {
	return mulMatInHalves(typed("mul_mat_q_cm", t), fmt.Sprintf("M=%d K=%d N=%d gap=%d", m, k, n, gap)+splitName(split), t, m, k, n, gap, 0, split)
}

// MulMatBlocksGated tests a mul_mat_q_cm that computes the products gate and up and their SwiGLU.
func MulMatBlocksGated(t gguf.Type, m, k, n, gap int, split kernels.CMTile) Case {
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
				r.Memory.Tiles, r.Override.Decoding = kernels.Scratch{Address: j.addr(spare), Bytes: bytes}, kernels.DecodeWithin
				if kernels.FitsCMTile(r, split) {
					r.Override.CMTile = split
				}
				p := kernels.Products{Type: t, X: a.X, N: a.N, K: a.K, XStride: a.XStride, DstStride: a.DstStride, GLU: true,
					Of: [3]kernels.Matrix{{W: a.W, Dst: a.Dst, M: a.M}, {W: j.addr(at[1]), M: a.M}}}
				if done, err := kernels.Multiply(r, &p); done || err != nil {
					return err
				}
				b, c := a, a // if the device lacks that kernel: separate ops
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

// splitName is the part of a case's name that describes the tile; "" for the device's own.
func splitName(s kernels.CMTile) string {
	if s == (kernels.CMTile{}) {
		return ""
	}
	return " split=" + s.String()
}

// mulMatInHalves makes a case of mul_mat_cm or mul_mat_q_cm: two products with the same X, and two with a residual, in place and from other memory.
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
			before := j.normal(n, m, 0) // the residual
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
				r.Memory.Tiles, r.Override.Decoding = scratch, kernels.DecodeWithin
				if kernels.FitsCMTile(r, split) { // some tiles are only for small subgroups
					r.Override.CMTile = split
				}
				if kernel == "mul_mat_cm" {
					r.Override.Decoding = kernels.DecodeBefore
				}
				if err := all([]shaders.MulMatArgs{a, b}, func(a shaders.MulMatArgs) error { return kernels.MulMat(r, t, a) }); err != nil {
					return err
				}
				add := func(x shaders.MulMatArgs, to uint64) error {
					p := kernels.Products{Type: t, X: x.X, N: x.N, K: x.K, XStride: x.XStride, DstStride: x.DstStride, Residual: to, ResidualStride: uint32(m), Of: [3]kernels.Matrix{{W: x.W, Dst: x.Dst, M: x.M}}}
					if done, err := kernels.Multiply(r, &p); done || err != nil {
						return err
					}
					x.Dst = j.addr(plain) // if the device lacks that kernel: separate ops
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

// AttnRun tests flash_attn_cm with rows of one sequence, at the positions from first on.
func AttnRun(t gguf.Type, s AttnShape, rows, first int) Case {
	return Case{
		Kernel: typed("flash_attn_cm", t), Shape: fmt.Sprintf("%s rows=%d first=%d", s, rows, first), MaxNMSE: nmseAttnHalf,
		build: func(j *job) error {
			pos, seq := make([]uint32, rows), make([]uint32, rows)
			for i := range pos {
				pos[i], seq[i] = uint32(first+i), 1
			}
			p := newPaged(j, t, 2, (first+rows+s.Page-1)/s.Page, s.Page, s.HeadsKV, s.KeyLen, s.ValLen)
			p.badKey = s.BadKey
			p.fill(j, 1, first+rows)
			q, want := j.normal(rows, s.Heads*s.KeyLen, s.Gap), shape(rows, s.Heads*s.ValLen, 2*s.Gap)
			dst := j.space(want)
			a := s.args(j, p, pos, seq)
			a.Q, a.Dst, a.QStride, a.DstStride = j.addr(j.mat(q)), j.addr(dst), uint32(q.Stride), uint32(want.Stride)
			s.wanted(want, q, p, pos, seq, a.Scale)
			j.output("dst", dst, want)
			j.record = func(r *kernels.Recorder) error {
				r.Rows.Run, r.Override.CMAttn = true, s.Split
				return kernels.FlashAttn(r, t, a)
			}
			return nil
		},
	}
}

// halvesTests has the entries of products and attention in float16.
var halvesTests = table{
	"tile_f16": {
		quick:  func(*shaders.Kernel) []Case { return []Case{TileF16(131, 1030, 0, 1e4)} },
		proofs: func(*kernels.Variant) []Case { return []Case{TileF16(131, 1030, 4, 1e4)} },
	},
	"dequant_f16": {
		quick:  func(k *shaders.Kernel) []Case { return []Case{DequantF16(k.Type, 133, 1024)} },
		proofs: func(v *kernels.Variant) []Case { return []Case{DequantF16(v.Row.Type, 133, 1024)} },
	},
	"mul_mat_cm": {
		quick: func(*shaders.Kernel) []Case {
			return []Case{MulMatHalves(gguf.Q4_K, 512, 256, 17, 4, 1), MulMatHalves(gguf.Q8_0, 260, 288, 129, 0, 0)}
		},
		proofs: func(v *kernels.Variant) []Case {
			return []Case{MulMatHalvesTile(gguf.Q8_0, 260, 288, tiledRows(v.CMTile), 0, 0, v.CMTile)}
		},
	},
	"mul_mat_q_cm": {
		quick: func(k *shaders.Kernel) []Case {
			return []Case{MulMatBlocks(k.Type, 300, 1024, 70, 0, kernels.CMTile{}),
				MulMatBlocks(k.Type, 100, 512, 40, 3, kernels.CMTile{BM: 64, BN: 64, WM: 32, WN: 16, BK: 32, Stages: 2, Halves: true, Wide: true})}
		},
		proofs: func(v *kernels.Variant) []Case {
			if v.GLU != shaders.NoGLU {
				return []Case{MulMatBlocksGated(v.Row.Type, 130, 512, tiledRows(v.CMTile), 0, v.CMTile)}
			}
			return []Case{MulMatBlocks(v.Row.Type, 260, 512, tiledRows(v.CMTile), 0, v.CMTile)}
		},
	},
	"flash_attn_cm": {
		quick: func(k *shaders.Kernel) []Case {
			if shaders.KVQuantised(k.Type) {
				return []Case{AttnRun(k.Type, AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: AttnMask{Window: 100}, SoftCap: 2, Sinks: 1}, 65, 333)}
			}
			return []Case{AttnRun(k.Type, AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 64, Gap: 4}, 64, 333),
				AttnRun(k.Type, AttnShape{Heads: 8, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32}, 65, 0)}
		},
		proofs: attnRunProofs,
	},
}

// tiledRows is a number of rows of X for which the last tile of size t is not full.
func tiledRows(t kernels.CMTile) int {
	switch {
	case t.BN <= 64:
		return 40
	case t.BN > shaders.TileRows:
		return 300
	}
	return 100
}

// attnRunProofs returns the proofs of a pipeline of flash_attn_cm: rows of one sequence, of which all see all positions up to their own and of which some see only the last ones, with the
// soft cap, sinks and slopes for which the pipeline was built.
func attnRunProofs(v *kernels.Variant) []Case {
	s := AttnShape{Heads: 4, HeadsKV: 2, KeyLen: int(v.KeyLen), ValLen: int(v.ValLen), Page: 32, Split: v.CMAttn}
	if v.Options&shaders.WithSlopes != 0 {
		s.Slopes = 0.1
	}
	if v.Options&shaders.WithSoftCap != 0 {
		s.SoftCap = 2
	}
	if v.Options&shaders.WithSinks != 0 {
		s.Sinks = 1
	}
	narrow := s
	narrow.Mask = AttnMask{Window: 50, Ahead: 3}
	return []Case{AttnRun(v.Row.Type, s, 65, 33), AttnRun(v.Row.Type, narrow, 65, 33)}
}
