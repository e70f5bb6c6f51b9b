package conform

import (
	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

// halvesCases are the products of many rows in halves, and what brings both sides into tiles. A device without
// cooperative matrices computes the products in float32.
func halvesCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range quant.Types() {
		lengths := rowLengths(t)
		for _, k := range []int{lengths[0], lengths[2], 1024} {
			cases = append(cases, selftest.DequantF16(t, 133, k))
		}
		cases = append(cases, selftest.MulMatHalves(t, 100, max(64, lengths[2]), 17, 4, 0), selftest.MulMatHalves(t, 300, 1024, 70, 0, 2))
	}
	for _, k := range []int{1, 64, 100, 256, 1030} {
		cases = append(cases, selftest.TileF16(3, k, 4, 1), selftest.TileF16(131, k, 0, 1e4))
	}
	cases = append(cases, selftest.TileF16(3, 128, 0, 1e30), selftest.TileF16(3, 128, 0, 1e-30), selftest.TileF16(3, 128, 0, 0))
	for _, n := range []int{17, 63, 64, 65, 127, 128, 129, 257} {
		for _, m := range []int{1, 63, 128, 129, 260} {
			cases = append(cases, selftest.MulMatHalves(gguf.Q8_0, m, 288, n, 0, 0), selftest.MulMatBlocks(gguf.Q8_0, m, 288, n, 0, kernels.CMTile{}))
		}
		cases = append(cases, selftest.MulMatHalves(gguf.Q4_K, 512, 256, n, 4, 1))
	}
	for _, t := range shaders.BlockTypes() {
		cases = append(cases, selftest.MulMatBlocks(t, 100, oddLength(t), 17, 4, kernels.CMTile{}), selftest.MulMatBlocks(t, 300, 1024, 70, 0, kernels.CMTile{}),
			selftest.MulMatBlocks(t, 100, 512, 40, 3, testSplits[0]),
			selftest.MulMatBlocksGated(t, 100, 512, 40, 4, kernels.CMTile{}), selftest.MulMatBlocksGated(t, 44, 512, 130, 0, testSplits[0]))
	}
	for _, n := range []int{100, 257} {
		for _, m := range []int{100, 260} {
			for _, split := range testSplits {
				cases = append(cases, selftest.MulMatBlocks(gguf.Q4_0, m, 288, n, 0, split))
				if !split.Halves {
					cases = append(cases, selftest.MulMatHalvesTile(gguf.Q4_0, m, 288, n, 0, 0, split))
				}
			}
		}
	}
	return append(cases, selftest.MulMatHalves(gguf.F16, 65, 4096, 40, 5, 0), selftest.MulMatHalves(gguf.F32, 130, 172, 33, 0, 0))
}

// oddLength is a length of weight rows that is no multiple of a tile's depth, where the type's blocks allow that.
func oddLength(t gguf.Type) int {
	b := t.BlockSize()
	return (96 + b - 1) / b * b
}

// testSplits are no large work to compile and do with 32 KiB: two stages; X, then W, from two tiles side by side, of which the
// second may not be there; two and four lanes that decode a chunk together.
var testSplits = []kernels.CMTile{
	{BM: 64, BN: 64, WM: 32, WN: 16, BK: 32, Stages: 2, Halves: true, Wide: true},
	{BM: 64, BN: 64, WM: 32, WN: 16, BK: 32, Stages: 2},
	{BM: 64, BN: 256, WM: 32, WN: 64, BK: 32},
	{BM: 256, BN: 64, WM: 32, WN: 64, BK: 32},
	{BM: 64, BN: 64, WM: 16, WN: 16, BK: 32, Stages: 2},
	{BM: 32, BN: 128, WM: 16, WN: 16, BK: 32},
}

// tileCases bring rows into tiles, as they are or as they are made. Each demands that a row's largest value comes to
// 256 … 512, that the padding is 0, and that the floats beside are right.
func tileCases() []selftest.Case {
	var cases []selftest.Case
	for _, variant := range []string{shaders.Wide, shaders.Norm, shaders.SiLU, shaders.GeLU} {
		for _, cols := range []int{4, 64, 100, 252, 1028, 4096} {
			cases = append(cases, selftest.TileRows(variant, 3, cols, 4, 1), selftest.TileRows(variant, 131, cols, 0, 1))
		}
		cases = append(cases, selftest.TileRows(variant, 5, 256, 8, 1e-20), selftest.TileRows(variant, 5, 256, 8, 1e4))
	}
	return cases
}
