package conform

import (
	"leat/internal/selftest"
	"leat/shaders/ref"
)

// gateCases are sigmoid_mul, swiglu_oai and cpy.
func gateCases() []selftest.Case {
	return []selftest.Case{
		selftest.SigmoidMul(1, 1, 1, ref.Gates{Group: 1}, 0), selftest.SigmoidMul(5, 172, 1, ref.Gates{Group: 172}, 0), selftest.SigmoidMul(33, 64, 1, ref.Gates{Group: 64}, 4),
		selftest.SigmoidMul(7, 256, 256, ref.Gates{Group: 256, Step: 1}, 0), selftest.SigmoidMul(9, 192, 384, ref.Gates{Group: 64, Jump: 128, Step: 1}, 8),
		selftest.SigmoidMul(70000, 60, 1, ref.Gates{Group: 60}, 0), // workgroups fold into y
		selftest.Cpy(1, 1, 0, 0), selftest.Cpy(33, 64, 128, 512), selftest.Cpy(70000, 60, 4, 3),
		selftest.SwiGLUOAI(1, 1), selftest.SwiGLUOAI(172, 1), selftest.SwiGLUOAI(4097, 8), selftest.SwiGLUOAI(4097, 100),
	}
}

// rowCases are the ops that reduce a row: rms_norm and soft_max.
func rowCases() []selftest.Case {
	var cases []selftest.Case
	for _, cols := range []int{1, 7, 64, 100, 127, 128, 129, 256, 1024, 4097} {
		for _, rows := range []int{1, 3, 17} {
			cases = append(cases, selftest.RMSNorm(rows, cols, 0, false, 1), selftest.SoftMax(rows, cols, 0.125, false))
		}
		cases = append(cases, selftest.RMSNorm(5, cols, 3, false, 1), selftest.RMSNorm(4, cols, 8, true, 1), selftest.SoftMax(4, cols, 3, true))
	}
	return append(cases,
		selftest.RMSNorm(3, 256, 0, false, 1e-4), // eps decides
		selftest.RMSNorm(3, 256, 0, false, 0),
		selftest.RMSNorm(70000, 8, 0, true, 1), // rows fold into y
		selftest.RMSNormSameBits(17, 1030),
		selftest.SoftMax(70000, 8, 1, true),
		selftest.SoftMaxLarge())
}

// pointCases are the ops of one value each: swiglu, geglu, add.
func pointCases() []selftest.Case {
	var cases []selftest.Case
	for _, count := range []int{1, 63, 64, 65, 172, 4097} {
		for _, op := range []string{"swiglu", "geglu"} {
			cases = append(cases, selftest.GLU(op, count, 1), selftest.GLU(op, count, 30)) // 30: exp and tanh saturate
		}
		cases = append(cases, selftest.Add(count, count, false), selftest.Add(3*count, count, true))
	}
	// More workgroups than one side of a grid can count.
	return append(cases, selftest.GLU("swiglu", 4_200_000, 1), selftest.Add(4_200_000, 1000, true))
}

func argmaxCases() []selftest.Case {
	var cases []selftest.Case
	for _, joined := range []bool{false, true} {
		for _, cols := range []int{1000, 5003} {
			cases = append(cases, selftest.Argmax("ties and NaN", 9, cols, joined, true))
		}
		for _, cols := range []int{1, 2, 5, 63, 64, 127, 129, 2045, 2046, 4095, 4097, 151936} {
			cases = append(cases, selftest.Argmax("normal", 3, cols, joined, false))
		}
		cases = append(cases, selftest.Argmax("folded", 70000, 4, joined, false))
	}
	return append(cases, selftest.Argmax("more parts than lanes", 2, 270001, true, true), selftest.Argmax("more parts than lanes", 9, 270001, true, true))
}

func checksumCases() []selftest.Case {
	var cases []selftest.Case
	for _, count := range []int{1, 127, 2047, 2048, 2049, 9000} {
		cases = append(cases, selftest.Checksum(count))
	}
	return cases
}

// stateCases are the ops with a state: ssm_conv and gated_delta_net.
func stateCases() []selftest.Case {
	cases := []selftest.Case{
		selftest.SSMConv(1, 1, 4, 0), selftest.SSMConv(2, 64, 4, 0), selftest.SSMConv(33, 100, 4, 3), selftest.SSMConv(5, 65, 2, 0), selftest.SSMConv(9, 7, 1, 0), selftest.SSMConv(40, 1000, 3, 0),
		selftest.SSMConvSameBits(9, 100, 4),
	}
	for _, d := range []ref.DeltaNet{
		{KeyHeads: 1, Heads: 1, Head: 8}, {KeyHeads: 2, Heads: 4, Head: 32}, {KeyHeads: 2, Heads: 4, Head: 32, Tiled: true},
		{KeyHeads: 2, Heads: 6, Head: 128, Tiled: true}, {KeyHeads: 1, Heads: 2, Head: 256}, {KeyHeads: 3, Heads: 3, Head: 100},
	} {
		cases = append(cases, selftest.DeltaNet(d, 2, 0, false), selftest.DeltaNet(d, 17, 4, true))
	}
	return append(cases, selftest.DeltaNetSameBits(ref.DeltaNet{KeyHeads: 2, Heads: 4, Head: 64}, 7))
}
