package selftest

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// nmseGatedHalf allows for the rounding to float16 in the products gate and up, before their SwiGLU.
const nmseGatedHalf = 4 * nmseHalf

// MulMatIDHalves tests mul_mat_id_cm with the tile split; zero: the device's own. With gated it computes gate and up and their SwiGLU. The results of pairs whose
// experts take no part must not change.
func MulMatIDHalves(t gguf.Type, s IDShape, gated bool, split kernels.CMTile) Case {
	name, most := s.String(), nmseHalf
	if gated {
		name, most = "gates "+name, nmseGatedHalf
	}
	name += splitName(split)
	s.Tiles = true
	return Case{Kernel: typed("mul_mat_id_cm", t), Shape: name, MaxNMSE: most, build: func(j *job) error {
		ids := chosenExperts(j, s.Rows, s.Used, s.Experts)
		a, _ := mulMatIDArgs(j, s, ids)
		x, want := j.normal(s.Rows, s.K, s.Gap), j.normal(len(ids), s.M, s.Gap)
		dst, gate, up := j.mat(want), shape(len(ids), s.M, s.Gap), shape(len(ids), s.M, s.Gap)
		j.sums("dst", dst, want, float64(s.K))
		table, w, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		p := kernels.ExpertProducts{Type: t, Experts: uint32(s.Experts), MulMatIDArgs: a}
		p.Table, p.X, p.Dst = table, j.addr(j.mat(x)), j.addr(dst)
		if !gated {
			err = ref.MulMatID(t, want, w, x, ids, s.Used, s.First, int(a.Last))
		} else {
			err = wantGatedPairs(j, &p, s, want, gate, up, x, ids, w)
		}
		if err != nil {
			return err
		}
		rows := shaders.ScratchBytes(uint32(s.Rows), uint32(s.K), 256)
		room := j.alloc(int(rows))
		gates, ups := j.alloc(4*len(gate.Data)), j.alloc(4*len(gate.Data))
		j.spare = append(j.spare, room, gates, ups)
		j.record = func(r *kernels.Recorder) error {
			r.Memory.Tiles = kernels.Scratch{Address: j.addr(room), Bytes: rows}
			if kernels.FitsCMTile(r, split) { // some tiles are only for small subgroups
				r.Override.CMTile = split
			}
			if done, err := kernels.MultiplyExperts(r, &p); done || err != nil {
				return err
			}
			return plainGates(r, p, j.addr(gates), j.addr(ups), ids, w)
		}
		return nil
	}}
}

// wantGatedPairs fills want with the reference's gated results, for the pairs that take part. It makes the matrices of up, and sets p.Up. gate and up are
// memory for the two products.
func wantGatedPairs(j *job, p *kernels.ExpertProducts, s IDShape, want, gate, up, x ref.Mat, ids []uint32, w [][]byte) error {
	table, other, err := newExpertWeights(j, p.Type, s)
	if err != nil {
		return err
	}
	p.Up = table
	if err := ref.MulMatID(p.Type, gate, w, x, ids, s.Used, s.First, int(p.Last)); err != nil {
		return err
	}
	if err := ref.MulMatID(p.Type, up, other, x, ids, s.Used, s.First, int(p.Last)); err != nil {
		return err
	}
	for i, id := range ids {
		if int(id) >= s.First && id < p.Last && w[id] != nil {
			ref.SwiGLU(want.Row(i), gate.Row(i), up.Row(i))
		}
	}
	return nil
}

// plainGates records a gated product as separate ops, for devices that lack the kernel. It leaves out pairs whose experts take no part. gates and ups are the
// addresses of memory for the two products.
func plainGates(r *kernels.Recorder, p kernels.ExpertProducts, gates, ups uint64, ids []uint32, w [][]byte) error {
	a, b := p.MulMatIDArgs, p.MulMatIDArgs
	b.Table, a.Dst, b.Dst = p.Up, gates, ups
	if err := all([]shaders.MulMatIDArgs{a, b}, func(a shaders.MulMatIDArgs) error { return kernels.MulMatID(r, p.Type, a, p.Experts) }); err != nil {
		return err
	}
	for i, id := range ids {
		if id < p.First || id >= p.Last || w[id] == nil {
			continue
		}
		row := 4 * uint64(i) * uint64(p.DstStride)
		if err := kernels.SwiGLU(r, shaders.GLUArgs{Gate: gates + row, Up: ups + row, Dst: p.Dst + row, Count: p.M}); err != nil {
			return err
		}
	}
	return nil
}

// idHalvesTests has the entry of mul_mat_id_cm.
var idHalvesTests = table{"mul_mat_id_cm": {
	quick: func(k *shaders.Kernel) []Case {
		return []Case{MulMatIDHalves(k.Type, IDShape{M: 65, K: 512, Rows: 40, Used: 4, Experts: 5, Gap: 3, Absent: true}, false, kernels.CMTile{})}
	},
	proofs: func(v *kernels.Variant) []Case {
		n := int(v.CMTile.BN)
		return []Case{MulMatIDHalves(v.Row.Type, IDShape{M: int(v.CMTile.BM) + 5, K: 512, Rows: n + n/2, Used: 2, Experts: 3}, v.GLU != 0, v.CMTile)}
	},
}}
