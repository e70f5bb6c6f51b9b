package conform

import (
	"slices"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

// turnedCases have each part alone, heads of which a part turns, columns that are too many, and teams of a part of four outputs.
func turnedCases() []selftest.Case {
	var cases []selftest.Case
	f16 := selftest.VecRopeShape{Heads: 4, HeadsKV: 2, Key: 64, Val: 64, Turns: 64, Neox: true, KV: gguf.F16, Parts: "qkv", K: 512, N: 3}
	f32 := selftest.VecRopeShape{Heads: 3, HeadsKV: 1, Key: 80, Val: 40, Turns: 20, KV: gguf.F32, Parts: "qkv", K: 768, N: 1}
	for _, k := range shaders.Kernels() {
		if k.Variant != shaders.Turned {
			continue
		}
		row := &k
		cases = append(cases, selftest.VecRope(row, f16, kernels.Tile{}), selftest.VecRope(row, f32, kernels.Tile{}))
		if !slices.Contains([]gguf.Type{gguf.Q4_K, gguf.Q6_K, gguf.Q8_0}, row.Type) {
			continue
		}
		for _, n := range []int{1, 8} {
			a, b, part, odd := f16, f32, f16, f32
			a.N, b.N, part.N, odd.N = n, n, n, n
			part.Parts, odd.Parts = "qk", "v"
			cases = append(cases, selftest.VecRope(row, a, kernels.Tile{}), selftest.VecRope(row, part, kernels.Tile{}), selftest.VecRope(row, odd, kernels.Tile{}))
			b.Neox, b.K = true, 2048
			for _, tile := range []kernels.Tile{{}, {Rows: 1, Team: 16, Unroll: 2}, {Rows: 2, Team: 8, Unroll: 1, Lanes: 128}, {Rows: 3, Team: 32, Unroll: 1, Lanes: 128}} {
				cases = append(cases, selftest.VecRope(row, b, tile))
			}
		}
		same := f16
		same.N = 8
		cases = append(cases, selftest.VecRopeSameBits(row, same))
	}
	return cases
}

// vecCases are the variants of mul_mat_vec whose lanes work in teams, and what makes their input.
func vecCases() []selftest.Case {
	var cases []selftest.Case
	for _, k := range []int{32, 64, 96, 288, 1024, 4096} {
		cases = append(cases, selftest.QuantizeQ8(1, k, 0, 1), selftest.QuantizeQ8(7, k, 5, 1))
	}
	cases = append(cases, selftest.QuantizeQ8(3, 256, 0, 0), selftest.QuantizeQ8(3, 256, 0, 1e-30), selftest.QuantizeQ8(3, 256, 0, 1e30))
	for _, k := range shaders.Kernels() {
		if k.Op != "mul_mat_vec" || k.Variant == shaders.FP32 || k.Variant == shaders.Turned {
			continue
		}
		row := &k
		if k.Variant == shaders.Straight {
			cases = append(cases, straightCases(row)...)
			continue
		}
		if k.Variant == shaders.Persistent {
			cases = append(cases, persistentCases(row)...)
			continue
		}
		for _, cols := range vecLengths(k.Type) {
			for _, m := range []int{1, 7, 100} {
				cases = append(cases, selftest.Vec(row, m, cols, 1, 0, kernels.Tile{}))
			}
		}
		long := vecLengths(k.Type)[1]
		for n := 2; n <= 8; n++ {
			cases = append(cases, selftest.Vec(row, 65, long, n, 4, kernels.Tile{}))
		}
		// Each tile is a pipeline, which lavapipe takes long to compile; what they change is the same for all types.
		cases = append(cases, selftest.Vec(row, 37, 2048+long, 1, 0, kernels.Tile{Rows: 4, Team: 16, Unroll: 2, Lanes: 64}))
		if slices.Contains([]gguf.Type{gguf.F16, gguf.Q4_K, gguf.Q6_K}, row.Type) {
			for _, tile := range []kernels.Tile{{Rows: 1, Team: 8, Unroll: 1, Lanes: 32}, {Rows: 3, Team: 32, Unroll: 4, Lanes: 64}, {Rows: 2, Team: 64, Unroll: 1, Lanes: 128}} {
				cases = append(cases, selftest.Vec(row, 37, 1024, 1, 0, tile), selftest.Vec(row, 37, 2048+long, 3, 0, tile))
			}
		}
		if row.Variant != shaders.Wide {
			cases = append(cases, selftest.VecExtremes(row))
		}
		cases = append(cases, selftest.Vec(row, 65, 1024, 8, 0, kernels.Tile{}), selftest.VecSameBits(row, 33, 1024), selftest.VecSameBits(row, 5, 4096))
	}
	return cases
}

// straightCases have rows that end within a lane's share, and teams of one subgroup and of several. They are few: code without loops
// takes lavapipe a second to compile.
func straightCases(row *shaders.Kernel) []selftest.Case {
	cases := []selftest.Case{selftest.VecExtremes(row), selftest.VecSameBits(row, 33, 1024), selftest.Vec(row, 1, 512, 1, 0, kernels.Tile{}), selftest.Vec(row, 100, 1024, 1, 0, kernels.Tile{}),
		selftest.Vec(row, 37, 5632, 1, 0, kernels.Tile{}), selftest.Vec(row, 65, 1024, 8, 0, kernels.Tile{}), selftest.Vec(row, 65, 1024, 3, 4, kernels.Tile{})}
	for _, tile := range []kernels.Tile{{Rows: 1, Team: 8, Unroll: 4, Lanes: 32}, {Rows: 3, Team: 32, Unroll: 2, Lanes: 64}, {Rows: 2, Team: 64, Unroll: 2, Lanes: 64}} {
		cases = append(cases, selftest.Vec(row, 37, 1024, 1, 0, tile), selftest.Vec(row, 300, 512, 3, 0, tile))
	}
	for _, n := range []int{1, 3} {
		cases = append(cases, selftest.VecSiblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), selftest.VecSiblings(row, [3]int{64, 1, 0}, 512, n, kernels.Tile{}), selftest.VecResidual(row, 65, 512, n, kernels.Tile{}),
			selftest.VecGates(row, 65, 512, n, false, kernels.Tile{}), selftest.VecGates(row, 96, 512, n, true, kernels.Tile{}))
	}
	return append(cases, selftest.VecGatesSameBits(row))
}

// persistentCases have rows that end within a lane's share, teams of a part of a subgroup and of several, more turns than one, and
// more columns than a workgroup has.
func persistentCases(row *shaders.Kernel) []selftest.Case {
	cases := []selftest.Case{selftest.VecExtremes(row), selftest.VecSameBits(row, 33, 1024), selftest.VecSameBits(row, 5, 4096), selftest.Vec(row, 1, 256, 1, 0, kernels.Tile{}), selftest.Vec(row, 100, 768, 1, 0, kernels.Tile{}),
		selftest.Vec(row, 37, 5632, 1, 0, kernels.Tile{}), selftest.Vec(row, 65, 1024, 8, 0, kernels.Tile{}), selftest.Vec(row, 65, 1024, 3, 4, kernels.Tile{})}
	if slices.Contains([]gguf.Type{gguf.Q4_K, gguf.Q6_K}, row.Type) {
		for _, tile := range []kernels.Tile{{Team: 8, Lanes: 32}, {Rows: 2, Team: 16, Lanes: 64}, {Team: 64}} {
			cases = append(cases, selftest.Vec(row, 37, 1024, 1, 0, tile), selftest.Vec(row, 1100, 512, 3, 0, tile))
		}
		cases = append(cases, selftest.Vec(row, 900, 256, 1, 0, kernels.Tile{}), selftest.Vec(row, 900, 256, 11, 4, kernels.Tile{}), selftest.VecSiblings(row, [3]int{900, 1, 0}, 256, 1, kernels.Tile{}), selftest.VecResidual(row, 900, 256, 3, kernels.Tile{}),
			selftest.VecGates(row, 32*17, 256, 1, true, kernels.Tile{}))
	}
	for _, n := range []int{1, 3} {
		cases = append(cases, selftest.VecSiblings(row, [3]int{33, 12, 20}, 512, n, kernels.Tile{}), selftest.VecResidual(row, 65, 512, n, kernels.Tile{}), selftest.VecGates(row, 65, 512, n, false, kernels.Tile{}), selftest.VecGates(row, 96, 512, n, true, kernels.Tile{}),
			selftest.VecGates(row, 96, 2048, n, true, kernels.Tile{Team: 64}))
	}
	return append(cases, selftest.VecGatesSameBits(row))
}

// vecLengths are multiples of what the kernels' widest loads need.
func vecLengths(t gguf.Type) []int {
	switch b := t.BlockSize(); b {
	case 1:
		return []int{8, 264, 1024, 4096}
	case 32:
		return []int{32, 288, 1024, 4096}
	default:
		return []int{b, 3 * b, 1024, 4096}
	}
}
