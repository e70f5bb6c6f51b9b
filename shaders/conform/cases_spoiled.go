package conform

import (
	"math"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// spoiledCases have NaN and infinities among their inputs, for every kernel that makes bytes, reads them, or chooses. What a reference makes
// of these must not come out as a number.
func spoiledCases() []Case {
	cases := []Case{
		quantizeQ8(9, 256, 4, 1), rmsNormQ8(9, 512, 0), rmsNormQ8(9, 2048, 4),
		kvAppend(gguf.F16, 2, 64, 64, 0, 1), kvAppend(gguf.Q8_0, 2, 64, 96, 0, 1), kvAppend(gguf.Q4_0, 3, 96, 64, 4, 1), kvAppend(gguf.Q4_0, 2, 64, 32, 4, ties),
		ropeKV(gguf.Q8_0, 4, 2, 64, 64, 64, true), ropeKV(gguf.Q4_0, 4, 2, 64, 64, 32, false), ropeNormKV(gguf.Q8_0, 4, 2, 64, 64, 64, true), ropeNormKV(gguf.Q4_0, 4, 2, 64, 64, 64, false),
		attnJoin(attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16}, 4), attnAlone(attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16}, 4),
		sigmoidMul(9, 64, 64, ref.Gates{Group: 64, Step: 1}, 4), swigluOAI(4097, 8),
		mulMatHalves(gguf.Q8_0, 100, 256, 17, 4, 0), mulMatBlocks(gguf.Q8_0, 100, 256, 17, 4, kernels.CMTile{}),
	}
	var keys []Case
	for _, t := range []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		cases = append(cases, attnFew(t, attnShape{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 16}, true))
		for _, s := range []attnShape{
			{heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, badKey: true}, {heads: 4, headsKV: 2, keyLen: 64, valLen: 64, page: 32, softCap: 2, sinks: 1, badKey: true},
		} {
			keys = append(keys, attn(t, s), attnFew(t, s, false), attnFew(t, s, true), attnRun(t, s, 65, 333))
		}
	}
	for _, r := range []ref.Router{
		{Experts: 8, Used: 2, Normalise: true, Scale: 1}, {Experts: 32, Used: 4, Late: true, Scale: 1}, {Experts: 300, Used: 4, Sigmoid: true, Scale: 1},
		{Experts: 128, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}},
		{Experts: 64, Used: 6, Scale: 1, Groups: 8, GroupsUsed: 3, GroupBest: 1},
	} {
		cases = append(cases, topK(r, 9), topKHeld(r, 9), topKRouted(gguf.F32, r, 5, 512, kernels.Tile{}, true))
	}
	for _, name := range []string{"mul_mat_vec_int8_q4_k", "mul_mat_vec_int8_q6_k", "mul_mat_vec_int8_q8_0", "mul_mat_vec_int8_iq4_xs", "mul_mat_vec_wide_f16"} {
		if row, ok := shaders.Lookup(name); ok {
			cases = append(cases, residual(row, 65, 512, 5, kernels.Tile{}), gates(row, 96, 512, 5, true, kernels.Tile{}))
		}
	}
	for i := range cases {
		cases[i] = spoiled(cases[i])
	}
	return append(cases, keys...)
}

// spoiled is a case with NaN and infinities in every other row of its matrices.
func spoiled(c Case) Case {
	build := c.build
	c.Shape += " spoiled"
	c.build = func(j *job) error {
		j.spoils = true
		return build(j)
	}
	return c
}

// spoil puts NaN or an infinity into every other row of x, if the case is to be spoiled.
func (j *job) spoil(x ref.Mat) {
	if !j.spoils {
		return
	}
	for r := 1; r < x.Rows; r += 2 {
		x.Row(r)[j.rng.IntN(x.Cols)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xff800001)}[r/2%4]
	}
}
