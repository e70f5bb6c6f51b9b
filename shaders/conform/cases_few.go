package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

// fewCases are what steps of few rows have in one dispatch.
func fewCases() []selftest.Case {
	var cases []selftest.Case
	for _, cols := range []int{32, 288, 1024, 4096, 5120} {
		cases = append(cases, selftest.RMSNormQ8(1, cols, 0), selftest.RMSNormQ8(7, cols, 4))
	}
	for _, t := range shaders.KVTypes {
		for _, neox := range []bool{false, true} {
			if shaders.KVQuantised(t) {
				cases = append(cases, selftest.RopeKV(t, 4, 2, 64, 64, 64, neox), selftest.RopeKV(t, 8, 8, 128, 32, 128, neox), selftest.RopeKV(t, 3, 1, 96, 96, 20, neox), selftest.RopeKV(t, 6, 2, 96, 160, 96, neox))
			} else {
				cases = append(cases, selftest.RopeKV(t, 4, 2, 64, 64, 64, neox), selftest.RopeKV(t, 8, 8, 128, 40, 128, neox), selftest.RopeKV(t, 3, 1, 80, 80, 20, neox))
				cases = append(cases, selftest.RopeNormKV(t, 3, 1, 80, 40, 20, neox), selftest.RopeNormKV(t, 2, 2, 16, 8, 16, neox))
			}
			cases = append(cases, selftest.RopeNormKV(t, 4, 2, 64, 64, 64, neox), selftest.RopeNormKV(t, 8, 2, 128, 128, 128, neox), selftest.RopeNormKV(t, 3, 1, 96, 160, 20, neox), selftest.RopeNormKV(t, 2, 1, 256, 288, 64, neox), selftest.RopeNormKV(t, 2, 2, 32, 32, 32, neox))
		}
		var shapes []selftest.AttnShape
		sizes := []int{8, 32, 64, 80, 96, 128, 160, 256}
		if t != gguf.F16 { // each size is a pipeline of its own, and what differs is how values are read
			sizes = []int{8, 64, 96, 256}
		}
		for _, size := range sizes {
			shapes = append(shapes, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 16})
		}
		for _, ratio := range []int{1, 3, 8, 16} {
			shapes = append(shapes, selftest.AttnShape{Heads: 2 * ratio, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32})
		}
		shapes = append(shapes,
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 96, Page: 16, Gap: 4},
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 40, Page: 16, Gap: 4},
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 5},
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 12},
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 256, Long: 1},
			selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sharp: true})
		for _, s := range append(shapes, optionShapes...) {
			if s.Holds(t) {
				cases = append(cases, selftest.AttnFew(t, s, true))
			}
			if s.Holds(t) && (s.KeyLen == 64 || s.KeyLen == 128) && s.ValLen == s.KeyLen { // the same code, less its end
				cases = append(cases, selftest.AttnFew(t, s, false))
			}
		}
		cases = append(cases, selftest.AttnFewSameBits(t, selftest.AttnShape{KeyLen: 64}), selftest.AttnFewSameBits(t, selftest.AttnShape{KeyLen: 64, Mask: selftest.AttnMask{Window: 40}, SoftCap: 5, Sinks: 1}))
	}
	cases = append(cases, selftest.AttnJoin(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Long: 1, Mask: selftest.AttnMask{Window: 1000}, Sinks: 3}, 3))
	for _, size := range []int{32, 64, 128, 256} {
		cases = append(cases, selftest.AttnJoin(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 16}, 3),
			selftest.AttnJoin(selftest.AttnShape{Heads: 4, HeadsKV: 1, KeyLen: 64, ValLen: size, Page: 32, Long: 1}, 32),
			selftest.AttnJoined(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 16}, 3),
			selftest.AttnJoined(selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 16, Mask: selftest.AttnMask{Window: 50}, SoftCap: 2, Sinks: 1}, 3),
			selftest.AttnJoined(selftest.AttnShape{Heads: 8, HeadsKV: 1, KeyLen: 64, ValLen: size, Page: 32, Long: 1}, 32))
	}
	for _, name := range []string{"mul_mat_vec_int8_q4_k", "mul_mat_vec_int8_q8_0", "mul_mat_vec_int8_iq4_xs", "mul_mat_vec_wide_f16"} {
		row, ok := shaders.Lookup(name)
		if !ok {
			continue // a test of the table misses it
		}
		for _, n := range []int{1, 3, 8} {
			cases = append(cases,
				selftest.VecSiblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), selftest.VecSiblings(row, [3]int{64, 1, 0}, 256, n, kernels.Tile{}),
				selftest.VecResidual(row, 65, 512, n, kernels.Tile{}), selftest.VecGates(row, 65, 256, n, false, kernels.Tile{}), selftest.VecGates(row, 96, 512, n, true, kernels.Tile{}))
		}
		cases = append(cases, selftest.VecGates(row, 1056, 2048, 1, true, kernels.Tile{}), selftest.VecGatesSameBits(row))
	}
	return cases
}
