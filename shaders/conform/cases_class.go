package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
)

// classCases hold kernels of one class to one promise: a row has the same bits alone and among others, whatever their number and
// wherever it stands among them.
func classCases() []selftest.Case {
	var cases []selftest.Case
	for _, role := range []kernels.Role{kernels.Prompt, kernels.Decode} {
		for _, t := range []gguf.Type{gguf.F16, gguf.Q4_K, gguf.Q6_K, gguf.Q8_0, gguf.MXFP4} {
			cases = append(cases, selftest.ClassMulMat(t, role, 130, 512))
		}
		cases = append(cases, selftest.ClassMulMat(gguf.Q6_K, role, 2100, 256), // of more rows than are decoded within the product
			selftest.ClassMulMatID(gguf.Q4_K, role, 64, 512), selftest.ClassMulMatID(gguf.F16, role, 20, 64))
		for _, s := range []selftest.AttnShape{{KeyLen: 64}, {KeyLen: 128, Sharp: true}, {KeyLen: 64, Mask: selftest.AttnMask{Window: 40}, SoftCap: 5, Sinks: 1}, {KeyLen: 64, Mask: selftest.AttnMask{Chunk: 48}, Slopes: 0.1}} {
			cases = append(cases, selftest.ClassAttn(gguf.F16, role, s))
		}
	}
	return cases
}
