package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

func ropeCases() []selftest.Case {
	var cases []selftest.Case
	for _, neox := range []bool{false, true} {
		for _, size := range []int{8, 16, 32, 40, 64, 80, 96, 128, 256} {
			cases = append(cases, selftest.Rope(5, 3, size, size, 0, neox))
		}
		cases = append(cases,
			selftest.Rope(1, 1, 64, 64, 0, neox), selftest.Rope(33, 8, 128, 128, 256, neox),
			selftest.Rope(7, 4, 64, 32, 0, neox), selftest.Rope(7, 4, 80, 20, 3, neox)) // part of the head only
	}
	return cases
}

func kvAppendCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range shaders.KVTypes {
		for _, size := range []int{8, 32, 40, 64, 96, 128, 160, 256} {
			if shaders.CheckKV(t, size, size) == nil {
				cases = append(cases, selftest.KVAppend(t, 2, size, size, 0, 1))
			}
		}
		key, val := 16, 8
		if shaders.KVQuantised(t) {
			key, val = 64, 32
			cases = append(cases, selftest.KVAppend(t, 3, 96, 64, 4, selftest.Ties))
		}
		cases = append(cases, selftest.KVAppend(t, 1, 64, 128, 4, 1), selftest.KVAppend(t, 8, 128, 64, 12, 1),
			selftest.KVAppend(t, 2, key, val, 0, 1e-7), selftest.KVAppend(t, 2, key, val, 0, 2e-5), selftest.KVAppend(t, 2, key, val, 0, 4e4), // subnormal, at F16's edges, infinite
			selftest.KVAppend(t, 2, key, val, 0, 0))
	}
	return cases
}

func attnCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range shaders.KVTypes {
		var shapes []selftest.AttnShape
		for _, size := range []int{8, 16, 32, 40, 64, 80, 96, 128, 160, 256} {
			shapes = append(shapes, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 16})
		}
		for _, ratio := range []int{1, 2, 4, 8} {
			shapes = append(shapes, selftest.AttnShape{Heads: 8, HeadsKV: 8 / ratio, KeyLen: 64, ValLen: 64, Page: 32})
		}
		shapes = append(shapes,
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 128, Page: 16},
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 96, Page: 16, Gap: 4},
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 40, Page: 16, Gap: 4},
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 512, ValLen: 512, Page: 16},
			selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 576, ValLen: 512, Page: 16},
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 5}, // borders anywhere
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 12},
			selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 256, Long: 1}, // long context
			selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sharp: true})
		for _, s := range append(shapes, optionShapes...) {
			if s.Holds(t) {
				cases = append(cases, selftest.Attn(t, s))
			}
		}
		cases = append(cases, selftest.AttnSameBits(t, selftest.AttnShape{KeyLen: 64}), selftest.AttnSameBits(t, selftest.AttnShape{KeyLen: 128}), selftest.AttnSameBits(t, selftest.AttnShape{KeyLen: 64, Mask: selftest.AttnMask{Window: 40}, SoftCap: 5, Sinks: 1}))
	}
	return cases
}

// optionShapes have windows that begin inside of a tile of 64, at its border and before all there is, caps that change most
// scores, sinks below and above all scores, chunks, positions behind the row's own, and slopes.
var optionShapes = []selftest.AttnShape{
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 1}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 30}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 64}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 65}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 66}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 500}},
	{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 256, Long: 1, Mask: selftest.AttnMask{Window: 700}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, SoftCap: 0.5},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sharp: true, SoftCap: 30},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sinks: -2},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sinks: 12},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Sharp: true, Sinks: 500},
	{Heads: 4, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 32, Mask: selftest.AttnMask{Window: 50}, SoftCap: 2, Sinks: 1},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Chunk: 48}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Ahead: 10}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Ahead: 5000}},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, Mask: selftest.AttnMask{Window: 30, Ahead: 29}, Slopes: 0.5},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 16, SoftCap: 0.5, Slopes: 0.01},
	{Heads: 2, HeadsKV: 2, KeyLen: 32, ValLen: 32, Page: 256, Long: 1, Slopes: 0.25},
	{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: 50, Ahead: 40}, SoftCap: 2, Slopes: 0.1},
}

// attnRunCases are rows of one sequence, which cooperative matrices attend with where a device has them.
func attnRunCases() []selftest.Case {
	var cases []selftest.Case
	for _, size := range []int{16, 64, 80, 96, 128} {
		cases = append(cases, selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 32}, 70, 0))
	}
	for _, rows := range []int{17, 63, 64, 65, 128, 200} {
		cases = append(cases,
			selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 8, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32}, rows, 0),
			selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 64, Gap: 4}, rows, 333))
	}
	cases = append(cases,
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 1, KeyLen: 64, ValLen: 128, Page: 32}, 40, 5),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 128, Page: 32, Sharp: true}, 100, 700),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 128, ValLen: 128, Page: 32, Gap: 3}, 65, 2000),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 64, Page: 32, Split: kernels.CMAttn{Subgroups: 6, Stages: 1}}, 200, 70),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 64, Page: 32, Split: kernels.CMAttn{Subgroups: 4, Stages: 2}}, 200, 70),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: 40}, SoftCap: 2, Sinks: 1, Split: kernels.CMAttn{Subgroups: 4, Stages: 2}}, 200, 70))
	for _, t := range []gguf.Type{gguf.Q8_0, gguf.Q4_0} {
		for _, size := range []int{32, 64, 96, 128} {
			cases = append(cases, selftest.AttnRun(t, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: size, ValLen: size, Page: 32}, 70, 0))
		}
		cases = append(cases,
			selftest.AttnRun(t, selftest.AttnShape{Heads: 4, HeadsKV: 1, KeyLen: 64, ValLen: 128, Page: 32}, 40, 5),
			selftest.AttnRun(t, selftest.AttnShape{Heads: 2, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 64, Gap: 4}, 200, 333),
			selftest.AttnRun(t, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: 100}, SoftCap: 2, Sinks: 1}, 65, 333))
	}
	// Windows of less than a tile of 32, of whole ones, of more than there is; each option alone is a pipeline of its own.
	for _, window := range []int{1, 31, 32, 33, 96, 1000} {
		cases = append(cases, selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: window}}, 130, 200))
	}
	for _, mask := range []selftest.AttnMask{{Chunk: 48}, {Chunk: 64}, {Ahead: 10}, {Ahead: 5000}, {Window: 30, Ahead: 29}} {
		cases = append(cases, selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: mask}, 130, 200))
	}
	return append(cases,
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Ahead: 5000}}, 100, 0),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Slopes: 0.5}, 130, 200),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: 40, Ahead: 7}, SoftCap: 2, Slopes: 0.02}, 130, 200),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Mask: selftest.AttnMask{Window: 40}}, 130, 0),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, SoftCap: 0.5}, 70, 0),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Sharp: true, SoftCap: 30}, 70, 100),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Sinks: -2}, 70, 0),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32, Sinks: 12}, 70, 100),
		selftest.AttnRun(gguf.F16, selftest.AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 128, ValLen: 128, Page: 32, Mask: selftest.AttnMask{Window: 50}, SoftCap: 2, Sinks: 1}, 100, 300))
}
