package selftest

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// Rope tests rope, which rotates ropeDim values of each head, with rows at random positions. With neox the pairs are (i, i+ropeDim/2), else (2i, 2i+1). gap is
// the number of values between rows.
func Rope(rows, heads, headDim, ropeDim, gap int, neox bool) Case {
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

// RopeKV tests that rope_kv, with one sequence, gives the same bits as rope and kv_append with another.
func RopeKV(t gguf.Type, heads, headsKV, keyLen, valLen, ropeDim int, neox bool) Case {
	return ropeInto("rope_kv", false, t, heads, headsKV, keyLen, valLen, ropeDim, neox)
}

// RopeNormKV tests that rope_norm_kv, with one sequence, gives the same bits as rms_norm, rope and kv_append with another.
func RopeNormKV(t gguf.Type, heads, headsKV, keyLen, valLen, ropeDim int, neox bool) Case {
	return ropeInto("rope_norm_kv", true, t, heads, headsKV, keyLen, valLen, ropeDim, neox)
}

// ropeInto makes the cases of RopeKV and, with norms, of RopeNormKV.
func ropeInto(kernel string, norms bool, t gguf.Type, heads, headsKV, keyLen, valLen, ropeDim int, neox bool) Case {
	return Case{
		Kernel: typed(kernel, t), Shape: fmt.Sprintf("heads=%d/%d K=%d V=%d rope=%d neox=%v", heads, headsKV, keyLen, valLen, ropeDim, neox), MaxNMSE: nmseExact,
		build: func(j *job) error {
			const rows, gap, maxPages, page = 5, 8, 2, 16
			p := newPaged(j, t, 2, maxPages, page, headsKV, keyLen, valLen)
			p.fill(j, 0, maxPages*page)
			one := make([]uint32, rows)
			pos, angles := []uint32{14, 15, 16, 17, 31}, shape(rows, ropeDim, 0)
			for r := range rows {
				one[r] = 1
				for i := range ropeDim / 2 {
					a := float64(pos[r]) * math.Pow(10000, -2*float64(i)/float64(ropeDim))
					angles.Row(r)[2*i], angles.Row(r)[2*i+1] = float32(math.Cos(a)), float32(math.Sin(a))
				}
			}
			q, k, v := j.normal(rows, heads*keyLen, gap), j.normal(rows, headsKV*keyLen, gap), j.normal(rows, headsKV*valLen, gap)
			q1, q2, k1, k2 := j.mat(q), j.mat(q), j.mat(k), j.mat(k)
			j.same("q", q1, q2, q)
			j.spare = append(j.spare, k1) // rope rotates K in place, the fused kernels do not
			for i := range maxPages {
				a, b := p.pages[p.Table[i]], p.pages[p.Table[maxPages+i]]
				copy(j.at(b), j.at(a))
				j.sameBytes(fmt.Sprintf("page %d", i), span{a.off + p.LayerOff, p.LayerBytes()}, span{b.off + p.LayerOff, p.LayerBytes()})
			}
			r := shaders.RopeArgs{CosSin: j.addr(j.mat(angles)), Rows: rows, HeadDim: uint32(keyLen), RopeDim: uint32(ropeDim)}
			if neox {
				r.Neox = 1
			}
			turnQ, turnK := r, r
			turnQ.X, turnQ.Heads, turnQ.XStride = j.addr(q1), uint32(heads), uint32(q.Stride)
			turnK.X, turnK.Heads, turnK.XStride = j.addr(k1), uint32(headsKV), uint32(k.Stride)
			put := shaders.KVAppendArgs{K: j.addr(k1), V: j.addr(j.mat(v)), Pages: j.addr(p.table), Pos: j.addr(j.uint32s(pos)), Seq: j.addr(j.uint32s(make([]uint32, rows))),
				Rows: rows, HeadsKV: uint32(headsKV), KeyLen: uint32(keyLen), ValLen: uint32(valLen),
				MaxPages: maxPages, PagePositions: page, LayerOff: uint32(p.LayerOff), KStride: uint32(k.Stride), VStride: uint32(v.Stride)}
			fused := shaders.RopeKVArgs{Q: j.addr(q2), K: j.addr(k2), V: put.V, CosSin: r.CosSin, Pages: put.Pages, Pos: put.Pos, Seq: j.addr(j.uint32s(one)),
				Rows: rows, Heads: uint32(heads), HeadsKV: put.HeadsKV, KeyLen: put.KeyLen, ValLen: put.ValLen, RopeDim: r.RopeDim,
				MaxPages: maxPages, PagePositions: page, LayerOff: put.LayerOff, QStride: turnQ.XStride, KStride: put.KStride, VStride: put.VStride, Neox: r.Neox}
			w := [2]uint64{j.addr(j.mat(j.normal(1, keyLen, 0))), j.addr(j.mat(j.normal(1, keyLen, 0)))}
			j.record = func(r *kernels.Recorder) error {
				for i, x := range []shaders.RopeArgs{turnQ, turnK} {
					if norms {
						if err := normHeads(r, &x, w[i]); err != nil {
							return err
						}
					}
					if err := kernels.Rope(r, x); err != nil {
						return err
					}
				}
				if err := kernels.KVAppend(r, t, put); err != nil {
					return err
				}
				if norms {
					return kernels.RopeNormKV(r, t, fused.Normed(w[0], w[1], ropeEps))
				}
				return kernels.RopeKV(r, t, fused)
			}
			return nil
		},
	}
}

// ropeEps is the norms' epsilon.
const ropeEps = 1e-5

// normHeads records an rms_norm of each head of the rows that x rotates, with the weights at w.
func normHeads(r *kernels.Recorder, x *shaders.RopeArgs, w uint64) error {
	for row := range x.Rows {
		at := x.X + 4*uint64(row)*uint64(x.XStride)
		a := shaders.RMSNormArgs{X: at, W: w, Dst: at, Rows: x.Heads, Cols: x.HeadDim, XStride: x.HeadDim, DstStride: x.HeadDim, Eps: ropeEps}
		if err := kernels.RMSNorm(r, a); err != nil {
			return err
		}
	}
	return nil
}

// ropeTests has the entries of rope and its variants.
var ropeTests = table{
	"rope": {quick: func(*shaders.Kernel) []Case {
		return []Case{Rope(33, 8, 128, 128, 256, false), Rope(7, 4, 80, 20, 3, true)}
	}},
	"rope_kv": {
		quick: func(k *shaders.Kernel) []Case {
			whole := RopeKV(k.Type, 4, 2, 64, 64, 64, true)
			if k.Type == gguf.F32 {
				return []Case{whole}
			}
			return []Case{RopeKV(k.Type, 3, 1, oddHead(k.Type), oddHead(k.Type), 20, false), whole}
		},
		proofs: func(v *kernels.Variant) []Case {
			odd := oddHead(v.Row.Type)
			return []Case{RopeKV(v.Row.Type, 4, 2, 64, 64, 64, true), RopeKV(v.Row.Type, 3, 1, odd, odd, 20, false)}
		},
	},
	"rope_norm_kv": {
		quick: func(k *shaders.Kernel) []Case {
			return []Case{RopeNormKV(k.Type, 3, 1, 96, 160, 20, false), RopeNormKV(k.Type, 8, 2, 128, 128, 128, true)}
		},
		proofs: func(v *kernels.Variant) []Case {
			n := 4 * int(v.RowLanes)
			return []Case{RopeNormKV(v.Row.Type, 4, 2, n, 64, n, true), RopeNormKV(v.Row.Type, 3, 1, max(n/2+32, n*3/4), oddHead(v.Row.Type), 20, false)}
		},
	},
}

// oddHead is a head size that is no power of 2, for a KV cache of type t.
func oddHead(t gguf.Type) int {
	if shaders.KVQuantised(t) {
		return 96
	}
	return 80
}
