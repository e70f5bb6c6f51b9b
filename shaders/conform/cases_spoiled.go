package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/shaders/ref"
)

// spoiledCases have NaN and infinities among their inputs, for every kernel that makes bytes, reads them, or chooses. What a reference makes
// of these must not come out as a number.
func spoiledCases() []selftest.Case {
	cases := []selftest.Case{
		selftest.QuantizeQ8(9, 256, 4, 1), selftest.RMSNormQ8(9, 512, 0), selftest.RMSNormQ8(9, 2048, 4),
		selftest.KVAppend(gguf.F16, 2, 64, 64, 0, 1), selftest.KVAppend(gguf.Q8_0, 2, 64, 96, 0, 1), selftest.KVAppend(gguf.Q4_0, 3, 96, 64, 4, 1), selftest.KVAppend(gguf.Q4_0, 2, 64, 32, 4, selftest.Ties),
		selftest.RopeKV(gguf.Q8_0, 4, 2, 64, 64, 64, true), selftest.RopeKV(gguf.Q4_0, 4, 2, 64, 64, 32, false), selftest.RopeNormKV(gguf.Q8_0, 4, 2, 64, 64, 64, true), selftest.RopeNormKV(gguf.Q4_0, 4, 2, 64, 64, 64, false),
		selftest.AttnJoin(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16}, 4), selftest.AttnJoined(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16}, 4),
		selftest.RMSNorm(selftest.NormShape{Rows: 9, Cols: 100, Size: 1}), selftest.LayerNorm(selftest.NormShape{Rows: 9, Cols: 100, Size: 1}),
		selftest.Unary("gelu", 9, 64, 0, 1), selftest.Unary("gelu_erf", 9, 64, 0, 1), selftest.Unary("relu2", 9, 64, 0, 1), selftest.XIELU(9, 64, 0, 1), selftest.Clamp(9, 64, 1),
		selftest.AddScaled(9, 64, 0.5, true), selftest.Mul(9, 64, 64, 1, true), selftest.Scale(9, 64, 2, true), selftest.SoftCap(9, 64, 1, 1, 30),
		selftest.SigmoidMul(9, 64, 64, ref.Gates{Group: 64, Step: 1}, 4), selftest.SwiGLUOAI(4097, 8),
		selftest.MulMatHalves(gguf.Q8_0, 100, 256, 17, 4, 0), selftest.MulMatBlocks(gguf.Q8_0, 100, 256, 17, 4, kernels.CMTile{}),
	}
	var keys []selftest.Case
	for _, t := range []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		cases = append(cases, selftest.AttnFew(t, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16}, true))
		for _, s := range []selftest.AttnShape{
			{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, BadKey: true}, {Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, SoftCap: 2, Sinks: 1, BadKey: true},
		} {
			keys = append(keys, selftest.Attn(t, s), selftest.AttnFew(t, s, false), selftest.AttnFew(t, s, true), selftest.AttnRun(t, s, 65, 333))
		}
	}
	for _, r := range []ref.Router{
		{Experts: 8, Used: 2, Normalise: true, Scale: 1}, {Experts: 32, Used: 4, Late: true, Scale: 1}, {Experts: 300, Used: 4, Sigmoid: true, Scale: 1},
		{Experts: 128, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}},
		{Experts: 64, Used: 6, Scale: 1, Groups: 8, GroupsUsed: 3, GroupBest: 1},
	} {
		cases = append(cases, selftest.TopK(r, 9), selftest.TopKHeld(r, 9), selftest.TopKRouted(gguf.F32, r, 5, 512, kernels.Tile{}, true))
	}
	cases = append(cases, selftest.TopK(ref.Router{Experts: 16, Used: 2, Sparse: true, Scale: 1}, 9))
	for _, name := range []string{"mul_mat_vec_int8_q4_k", "mul_mat_vec_int8_q6_k", "mul_mat_vec_int8_q8_0", "mul_mat_vec_int8_iq4_xs", "mul_mat_vec_wide_f16"} {
		if row, ok := shaders.Lookup(name); ok {
			cases = append(cases, selftest.VecResidual(row, 65, 512, 5, kernels.Tile{}), selftest.VecGates(row, 96, 512, 5, true, kernels.Tile{}))
		}
	}
	for i := range cases {
		cases[i] = selftest.Spoiled(cases[i])
	}
	return append(cases, keys...)
}
