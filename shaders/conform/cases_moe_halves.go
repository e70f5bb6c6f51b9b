package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// nmseGatedHalf allows what halves cost two products of which one is gated by the other.
const nmseGatedHalf = 4 * nmseHalf

// idHalvesCases are products of many rows with experts. A device without cooperative matrices computes them in float32.
func idHalvesCases() []Case {
	var cases []Case
	for _, k := range shaders.Kernels() {
		if k.Op != "mul_mat_id" || k.Variant != shaders.CM {
			continue
		}
		t, long := k.Type, max(96, k.Type.BlockSize())
		cases = append(cases,
			idHalves(t, idShape{m: 100, k: long, rows: 33, used: 2, experts: 6, gap: 4}, false, kernels.CMTile{}),
			idHalves(t, idShape{m: 260, k: 1024, rows: 150, used: 2, experts: 3, first: 1, last: 3}, false, kernels.CMTile{}),
			idHalves(t, idShape{m: 65, k: 512, rows: 40, used: 4, experts: 5, gap: 3, absent: true}, false, kernels.CMTile{}),
		)
	}
	for _, t := range []gguf.Type{gguf.Q4_0, gguf.Q4_K, gguf.Q6_K, gguf.IQ4_XS} {
		cases = append(cases, idHalves(t, idShape{m: 65, k: 512, rows: 40, used: 4, experts: 5, gap: 3, absent: true}, true, kernels.CMTile{}))
	}
	// A pipeline takes a software device minutes to compile: each split but once.
	for _, rows := range []int{17, 64, 129} {
		cases = append(cases,
			idHalves(gguf.Q4_K, idShape{m: 129, k: 256, rows: rows, used: 1, experts: 2}, false, kernels.CMTile{BM: 128, BN: 32, WM: 32, WN: 32}),
			idHalves(gguf.Q4_0, idShape{m: 200, k: 288, rows: rows, used: 3, experts: 4}, true, kernels.CMTile{BM: 128, BN: 64, WM: 64, WN: 32}))
	}
	return cases
}

// idHalves multiplies pairs with the weights of their experts, gated or not; the rows of pairs that take no part stay as they are.
func idHalves(t gguf.Type, s idShape, gated bool, split kernels.CMTile) Case {
	name, most := s.String(), nmseHalf
	if gated {
		name, most = "gates "+name, nmseGatedHalf
	}
	name += splitName(split)
	s.tiles = true
	return Case{Kernel: typed("mul_mat_id_cm", t), Shape: name, MaxNMSE: most, build: func(j *job) error {
		ids := chosenExperts(j, s.rows, s.used, s.experts)
		a, _ := mulMatIDArgs(j, s, ids)
		x, want := j.normal(s.rows, s.k, s.gap), j.normal(len(ids), s.m, s.gap)
		dst, gate, up := j.mat(want), shape(len(ids), s.m, s.gap), shape(len(ids), s.m, s.gap)
		j.sums("dst", dst, want, float64(s.k))
		table, w, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		p := kernels.ExpertProducts{Type: t, Experts: uint32(s.experts), MulMatIDArgs: a}
		p.Table, p.X, p.Dst = table, j.addr(j.mat(x)), j.addr(dst)
		if !gated {
			err = ref.MulMatID(t, want, w, x, ids, s.used, s.first, int(a.Last))
		} else {
			err = wantGatedPairs(j, &p, s, want, gate, up, x, ids, w)
		}
		if err != nil {
			return err
		}
		rows := shaders.ScratchBytes(uint32(s.rows), uint32(s.k), 256)
		room := j.alloc(int(rows))
		gates, ups := j.alloc(4*len(gate.Data)), j.alloc(4*len(gate.Data))
		j.spare = append(j.spare, room, gates, ups)
		j.record = func(r *kernels.Recorder) error {
			r.Scratch = kernels.Scratch{Address: j.addr(room), Bytes: rows}
			if kernels.FitsCMTile(r, split) { // some are for small subgroups alone
				r.CMTile = split
			}
			if done, err := kernels.MultiplyExperts(r, &p); done || err != nil {
				return err
			}
			return plainGates(r, p, j.addr(gates), j.addr(ups), ids, w)
		}
		return nil
	}}
}

// wantGatedPairs fills want with what the reference makes of pairs that take part, and makes the matrices that are gated.
func wantGatedPairs(j *job, p *kernels.ExpertProducts, s idShape, want, gate, up, x ref.Mat, ids []uint32, w [][]byte) error {
	table, other, err := newExpertWeights(j, p.Type, s)
	if err != nil {
		return err
	}
	p.Up = table
	if err := ref.MulMatID(p.Type, gate, w, x, ids, s.used, s.first, int(p.Last)); err != nil {
		return err
	}
	if err := ref.MulMatID(p.Type, up, other, x, ids, s.used, s.first, int(p.Last)); err != nil {
		return err
	}
	for i, id := range ids {
		if int(id) >= s.first && id < p.Last && w[id] != nil {
			ref.SwiGLU(want.Row(i), gate.Row(i), up.Row(i))
		}
	}
	return nil
}

// plainGates is what a gated product stands for, op by op, for the pairs that take part.
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
