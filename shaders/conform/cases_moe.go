package conform

import (
	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/shaders/ref"
)

func moeCases() []selftest.Case {
	var cases []selftest.Case
	for _, c := range []struct {
		r    ref.Router
		rows int
	}{
		{ref.Router{Experts: 8, Used: 2, Normalise: true, Scale: 1}, 5},
		{ref.Router{Experts: 60, Used: 4, Scale: 1}, 33},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 17},
		{ref.Router{Experts: 512, Used: 10, Normalise: true, Scale: 1}, 3},
		{ref.Router{Experts: 1, Used: 1, Scale: 1}, 2},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 1},
		{ref.Router{Experts: 60, Used: 4, Late: true, Scale: 1}, 1},
		{ref.Router{Experts: 260, Used: 200, Sigmoid: true, Scale: 1}, 1}, // more than there are lanes
		{ref.Router{Experts: 32, Used: 4, Late: true, Scale: 1}, 7},
		{ref.Router{Experts: 256, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}}, 9},
		{ref.Router{Experts: 6, Used: 2, Sigmoid: true, Scale: 1, Groups: 6, GroupsUsed: 3, GroupBest: 2}, 9},
		{ref.Router{Experts: 160, Used: 6, Scale: 16, Groups: 8, GroupsUsed: 3, GroupBest: 1}, 9},
		{ref.Router{Experts: 1024, Used: 16, Sigmoid: true, Normalise: true, Scale: 1, Bias: []float32{}}, 2},
		{ref.Router{Experts: 100, Used: 100, Normalise: true, Scale: 1}, 3},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1, Scales: []float32{}}, 5},
		{ref.Router{Experts: 16, Used: 2, Sparse: true, Scale: 1}, 33},
		{ref.Router{Experts: 300, Used: 5, Sparse: true, Scale: 1}, 1},
	} {
		cases = append(cases, selftest.TopK(c.r, c.rows))
		if c.r.Experts <= shaders.MaxPer*shaders.HeldLanes && !c.r.Sparse {
			cases = append(cases, selftest.TopKHeld(c.r, c.rows))
		}
	}
	cases = append(cases,
		selftest.SumExperts(1, 1, 7, 0, false), selftest.SumExperts(5, 2, 256, 0, true), selftest.SumExperts(33, 8, 172, 4, true),
		selftest.PlainSum(1, 1, 64), selftest.PlainSum(5, 2, 172), selftest.PlainSum(33, 9, 172), selftest.PairScale(1, 1, 64), selftest.PairScale(33, 3, 172),
		selftest.GroupExperts(1, 1, 0), selftest.GroupExperts(2, 8, 0), selftest.GroupExperts(64, 8, 0), selftest.GroupExperts(1000, 60, 0), selftest.GroupExperts(1001, 60, 3), selftest.GroupExperts(4096, 128, 0), selftest.GroupExperts(300, 1024, 0),
	)
	for _, t := range quant.Types() {
		k := rowLengths(t)[2]
		cases = append(cases,
			selftest.MulMatID(t, selftest.IDShape{M: 65, K: k, Rows: 1, Used: 8, Experts: 16}),
			selftest.MulMatID(t, selftest.IDShape{M: 7, K: 1024, Rows: 5, Used: 3, Experts: 4, Gap: 4}),
			selftest.MulMatID(t, selftest.IDShape{M: 100, K: k, Rows: 33, Used: 2, Experts: 6, Tiles: true}),
			selftest.MulMatID(t, selftest.IDShape{M: 7, K: 1024, Rows: 70, Used: 1, Experts: 3, Gap: 4, First: 1, Last: 2, Tiles: true}),
			selftest.MulMatIDSameBits(t, 36, k),
		)
	}
	for _, tiles := range []bool{false, true} {
		cases = append(cases, selftest.MulMatID(gguf.Q4_K, selftest.IDShape{M: 20, K: 512, Rows: 12, Used: 2, Experts: 3, Tiles: tiles, Absent: true}))
	}
	return append(cases, selftest.MulMatID(gguf.F16, selftest.IDShape{M: 9, K: 37, Rows: 9, Used: 2, Experts: 5, Gap: 3, Tiles: true}))
}

// idHalvesCases are products of many rows with experts. A device without cooperative matrices computes them in float32.
func idHalvesCases() []selftest.Case {
	var cases []selftest.Case
	for _, k := range shaders.Kernels() {
		if k.Op != "mul_mat_id" || k.Variant != shaders.CM {
			continue
		}
		t, long := k.Type, oddLength(k.Type)
		cases = append(cases,
			selftest.MulMatIDHalves(t, selftest.IDShape{M: 100, K: long, Rows: 33, Used: 2, Experts: 6, Gap: 4}, false, kernels.CMTile{}),
			selftest.MulMatIDHalves(t, selftest.IDShape{M: 260, K: 1024, Rows: 150, Used: 2, Experts: 3, First: 1, Last: 3}, false, kernels.CMTile{}),
			selftest.MulMatIDHalves(t, selftest.IDShape{M: 65, K: 512, Rows: 40, Used: 4, Experts: 5, Gap: 3, Absent: true}, false, kernels.CMTile{}),
		)
	}
	for _, t := range []gguf.Type{gguf.Q4_0, gguf.Q4_K, gguf.Q6_K, gguf.IQ4_XS} {
		cases = append(cases, selftest.MulMatIDHalves(t, selftest.IDShape{M: 65, K: 512, Rows: 40, Used: 4, Experts: 5, Gap: 3, Absent: true}, true, kernels.CMTile{}))
	}
	// A pipeline takes a software device minutes to compile: each split but once.
	for _, rows := range []int{17, 64, 129} {
		cases = append(cases,
			selftest.MulMatIDHalves(gguf.Q4_K, selftest.IDShape{M: 129, K: 256, Rows: rows, Used: 1, Experts: 2}, false, kernels.CMTile{BM: 128, BN: 32, WM: 32, WN: 32}),
			selftest.MulMatIDHalves(gguf.Q4_0, selftest.IDShape{M: 200, K: 288, Rows: rows, Used: 3, Experts: 4}, true, kernels.CMTile{BM: 128, BN: 64, WM: 64, WN: 32}))
	}
	return cases
}

func routedCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16} {
		cases = append(cases, selftest.TopKRouted(t, ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 1, 2048, kernels.Tile{}, true))
	}
	for _, c := range []struct {
		r          ref.Router
		rows, cols int
		tile       kernels.Tile
	}{
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 3, 2048, kernels.Tile{}},
		{ref.Router{Experts: 60, Used: 4, Scale: 1}, 8, 288, kernels.Tile{}},
		{ref.Router{Experts: 1, Used: 1, Scale: 1}, 2, 32, kernels.Tile{}},
		{ref.Router{Experts: 5, Used: 5, Scale: 1}, 3, 4096, kernels.Tile{}},
		{ref.Router{Experts: 32, Used: 4, Late: true, Scale: 1}, 7, 2880, kernels.Tile{}},
		{ref.Router{Experts: 512, Used: 10, Normalise: true, Scale: 1}, 2, 2048, kernels.Tile{}},
		{ref.Router{Experts: 256, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}}, 3, 1024, kernels.Tile{}},
		{ref.Router{Experts: 160, Used: 6, Scale: 16, Groups: 8, GroupsUsed: 3, GroupBest: 1}, 4, 512, kernels.Tile{}},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 2, 2048, kernels.Tile{Rows: 1, Team: 64, Unroll: 2, Lanes: 128}},
		{ref.Router{Experts: 130, Used: 8, Normalise: true, Scale: 1}, 2, 1120, kernels.Tile{Rows: 1, Team: 4, Unroll: 8, Lanes: 64}},
		{ref.Router{Experts: 7, Used: 2, Normalise: true, Scale: 1}, 2, 1120, kernels.Tile{Rows: 1, Team: 32, Unroll: 1, Lanes: 32}},
	} {
		cases = append(cases, selftest.TopKRouted(gguf.F32, c.r, c.rows, c.cols, c.tile, true))
	}
	return cases
}

// teamIDCases are products with experts in bytes.
func teamIDCases() []selftest.Case {
	var cases []selftest.Case
	for _, k := range shaders.Kernels() {
		row := &k
		if row.Op != "mul_mat_vec_id" || row.Variant != shaders.Int8 {
			continue
		}
		for _, tiles := range []bool{false, true} {
			cases = append(cases,
				selftest.VecID(row, selftest.IDShape{M: 65, K: 512, Rows: 1, Used: 8, Experts: 16, Tiles: tiles}, shaders.NoGLU, kernels.Tile{}),
				selftest.VecID(row, selftest.IDShape{M: 7, K: 768, Rows: 19, Used: 3, Experts: 4, Gap: 4, First: 1, Last: 3, Tiles: tiles}, shaders.NoGLU, kernels.Tile{}),
				selftest.VecID(row, selftest.IDShape{M: 33, K: 256, Rows: 5, Used: 2, Experts: 3, First: 1, Last: 2, Tiles: tiles}, shaders.GLUFloats, kernels.Tile{}),
				selftest.VecID(row, selftest.IDShape{M: 96, K: 1024, Rows: 21, Used: 2, Experts: 5, Tiles: tiles}, shaders.GLUBytes, kernels.Tile{}),
			)
		}
		cases = append(cases, selftest.VecIDSameBits(row), selftest.VecID(row, selftest.IDShape{M: 7, K: 1024, Rows: 5, Used: 3, Experts: 4, Gap: 4}, shaders.NoGLU, kernels.Tile{}))
	}
	if row, ok := shaders.Lookup("mul_mat_vec_id_int8_q4_k"); ok {
		for _, tiles := range []bool{false, true} {
			cases = append(cases, selftest.VecID(row, selftest.IDShape{M: 20, K: 512, Rows: 12, Used: 2, Experts: 3, Tiles: tiles, Absent: true}, shaders.NoGLU, kernels.Tile{}),
				selftest.VecID(row, selftest.IDShape{M: 64, K: 512, Rows: 12, Used: 2, Experts: 3, Tiles: tiles, Absent: true}, shaders.GLUFloats, kernels.Tile{}))
		}
	}
	return cases
}

func thereCases() []selftest.Case {
	var cases []selftest.Case
	for _, c := range []struct{ experts, count, absent int }{
		{8, 1, -1}, {8, 1, 0}, {60, 8, -1}, {60, 8, 0}, {60, 8, 7}, {8, 17, -1}, {8, 17, 0}, {128, 64, 63},
		{1024, 300, -1}, {1024, 300, 299}, // more than there are lanes
	} {
		cases = append(cases, selftest.LookupExperts(c.experts, c.count, c.absent))
	}
	return cases
}
