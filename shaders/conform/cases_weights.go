package conform

import (
	"slices"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/selftest"
)

func headCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range quant.Types() {
		k := rowLengths(t)[2]
		cases = append(cases, selftest.MulMatHeads(t, 3, 7, k, 1, 0, 0), selftest.MulMatHeads(t, 4, 65, 1024, 3, 8, 16), selftest.MulMatHeads(t, 2, 20, k, 17, 4, 0), selftest.MulMatHeadsSameBits(t, 3, 9, k, 11))
	}
	return append(cases, selftest.MulMatHeads(gguf.F16, 128, 16, 40, 2, 0, 4), selftest.MulMatHeads(gguf.F32, 5, 6, 37, 9, 3, 1))
}

// rowLengths are the lengths of weight rows tried for a type: one block, a few, many.
func rowLengths(t gguf.Type) []int {
	switch b := t.BlockSize(); b {
	case 1:
		return []int{1, 36, 64, 100, 172, 256, 288, 512, 1024, 4096}
	case 32:
		return []int{32, 64, 256, 288, 512, 1024, 4096}
	case 256:
		return []int{256, 512, 768, 1024, 4096}
	default:
		return []int{b, 2 * b, 3 * b, 7 * b, 1024, 4096}
	}
}

func getRowsCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range quant.Types() {
		for _, cols := range rowLengths(t) {
			for _, rows := range []int{1, 5, 33} {
				cases = append(cases, selftest.GetRows(t, rows, cols, 1, 0))
			}
		}
		// Scales that are subnormal as F16 are common in real models; a device must not flush them.
		// Tensors pass 4 GiB: the offset of a row must not be counted in 32 bits.
		cases = append(cases, selftest.GetRows(t, 33, 256, 3e-5, 0), selftest.GetRows(t, 5, 4096, 1, 5<<30))
	}
	return cases
}

func mulMatCases() []selftest.Case {
	var cases []selftest.Case
	for _, t := range quant.Types() {
		lengths := rowLengths(t)
		for _, k := range lengths {
			for _, m := range []int{1, 3, 7, 64, 100, 257} {
				cases = append(cases, selftest.MulMat(t, m, k, 1, 0))
			}
		}
		for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64} {
			cases = append(cases, selftest.MulMat(t, 7, lengths[0], n, 0), selftest.MulMat(t, 100, lengths[2], n, 4), selftest.MulMat(t, 65, 1024, n, 0))
		}
		// Rows of X that begin anywhere, not on 16 bytes: pipelines of their own, which lavapipe takes long to compile.
		cases = append(cases, selftest.MulMat(t, 100, lengths[2], 3, 5))
		if slices.Contains([]gguf.Type{gguf.F32, gguf.Q4_0, gguf.Q6_K}, t) {
			cases = append(cases, selftest.MulMat(t, 100, lengths[2], 17, 5))
		}
		cases = append(cases, selftest.MulMat(t, 257, 4096, 17, 0))
		cases = append(cases, selftest.MulMatSameBits(t, 37, lengths[1]), selftest.MulMatSameBits(t, 5, 1024), selftest.MulMatSameBits(t, 6, 4096))
		if t.BlockSize() == 1 {
			cases = append(cases, selftest.MulMatSameBits(t, 9, 172), selftest.MulMatSameBits(t, 9, 36))
		}
	}
	// More workgroups than one side of a grid can count.
	return append(cases, selftest.MulMat(gguf.Q8_0, 150001, 32, 1, 0), selftest.MulMat(gguf.Q4_0, 150001, 32, 9, 0))
}
