package conform

import (
	"leat/gguf"
	"leat/internal/selftest"
	"leat/shaders/ref"
)

// gateCases are sigmoid_mul and swiglu_oai.
func gateCases() []selftest.Case {
	return []selftest.Case{
		selftest.SigmoidMul(1, 1, 1, ref.Gates{Group: 1}, 0), selftest.SigmoidMul(5, 172, 1, ref.Gates{Group: 172}, 0), selftest.SigmoidMul(33, 64, 1, ref.Gates{Group: 64}, 4),
		selftest.SigmoidMul(7, 256, 256, ref.Gates{Group: 256, Step: 1}, 0), selftest.SigmoidMul(9, 192, 384, ref.Gates{Group: 64, Jump: 128, Step: 1}, 8), selftest.SigmoidMul(9, 192, 3, ref.Gates{Group: 64, Jump: 1}, 8),
		selftest.SigmoidMul(70000, 60, 1, ref.Gates{Group: 60}, 0), // workgroups fold into y
		selftest.SwiGLUOAI(1, 1), selftest.SwiGLUOAI(172, 1), selftest.SwiGLUOAI(4097, 8), selftest.SwiGLUOAI(4097, 100),
	}
}

// rowCases are the ops that reduce a row: rms_norm, norm and soft_max.
func rowCases() []selftest.Case {
	var cases []selftest.Case
	norms := func(s selftest.NormShape) {
		s.Size = 1
		cases = append(cases, selftest.RMSNorm(s))
		s.Mean, s.Biased = 2, s.Rows%2 == 1
		cases = append(cases, selftest.LayerNorm(s))
	}
	for _, cols := range []int{1, 7, 64, 100, 127, 128, 129, 256, 1024, 4097} {
		for _, rows := range []int{1, 3, 17} {
			norms(selftest.NormShape{Rows: rows, Cols: cols})
			cases = append(cases, selftest.SoftMax(rows, cols, 0.125, false))
		}
		norms(selftest.NormShape{Rows: 5, Cols: cols, Gap: 3})
		norms(selftest.NormShape{Rows: 4, Cols: cols, Gap: 8, InPlace: true})
		cases = append(cases, selftest.SoftMax(4, cols, 3, true))
	}
	for _, cols := range []int{16, 63, 64, 128} {
		norms(selftest.NormShape{Rows: 15, Cols: cols, Heads: 5, InPlace: true})
		norms(selftest.NormShape{Rows: 15, Cols: cols, Bare: true})
	}
	norms(selftest.NormShape{Rows: 70000, Cols: 8, InPlace: true}) // rows fold into y
	return append(cases,
		selftest.RMSNorm(selftest.NormShape{Rows: 3, Cols: 256, Size: 1e-4}), // eps decides
		selftest.RMSNorm(selftest.NormShape{Rows: 3, Cols: 256}),
		selftest.RMSNorm(selftest.NormShape{Rows: 3, Cols: 256, Bare: true, Size: 1, Scale: 1.0 / 48}), selftest.RMSNorm(selftest.NormShape{Rows: 12, Cols: 64, Heads: 3, InPlace: true, Size: 1, Scale: 0.125}),
		selftest.LayerNorm(selftest.NormShape{Rows: 3, Cols: 256, Size: 1e-4}), selftest.LayerNorm(selftest.NormShape{Rows: 3, Cols: 256, Mean: 0.5}),
		selftest.LayerNorm(selftest.NormShape{Rows: 4, Cols: 1024, Gap: 8, InPlace: true, Biased: true, Mean: 1, Size: 1}), selftest.LayerNorm(selftest.NormShape{Rows: 17, Cols: 4097, Bare: true, Mean: 30, Size: 1}),
		selftest.RMSNormSameBits(17, 1030), selftest.LayerNormSameBits(17, 1030),
		selftest.SoftMax(70000, 8, 1, true),
		selftest.SoftMaxLarge())
}

// valueCases are the ops of one value each: activation functions, sums, products, copies.
func valueCases() []selftest.Case {
	var cases []selftest.Case
	for _, count := range []int{1, 63, 64, 65, 172, 4097} {
		for _, op := range []string{"swiglu", "geglu", "geglu_erf"} {
			cases = append(cases, selftest.GLU(op, count, 1), selftest.GLU(op, count, 30)) // 30: exp saturates
		}
		for _, op := range []string{"gelu", "gelu_erf", "relu2"} {
			cases = append(cases, selftest.Unary(op, 1, count, 0, 1))
		}
		cases = append(cases, selftest.Add(count, count, false), selftest.Add(3*count, count, true),
			selftest.XIELU(1, count, 0, 1), selftest.Clamp(1, count, 1), selftest.AddScaled(2, count, -3, false), selftest.Mul(2, count, 2*count, 1, false),
			selftest.Mul(3, count, count, 1, true), selftest.Mul(3, count, 3, count, true), selftest.Mul(2, count, 1, 1, true), selftest.Scale(2, count, 0.1, false))
	}
	for _, op := range []string{"gelu", "gelu_erf", "relu2"} {
		cases = append(cases, selftest.Unary(op, 3, 1365, 0, 2), selftest.Unary(op, 1, 1000, -3, 0.5), selftest.Unary(op, 1, 1000, 0, 1e-3), selftest.Unary(op, 1, 1000, 0, 30))
	}
	cases = append(cases, selftest.XIELU(3, 1365, 0, 2), selftest.XIELU(1, 1000, -0.1, 0.03), selftest.XIELU(1, 1000, 0, 1e-5), selftest.XIELU(1, 1000, -30, 10),
		selftest.Clamp(3, 1365, 0.7), selftest.AddScaled(3, 172, 0.22, true), selftest.Mul(9, 172, 172, 1, true), selftest.Mul(9, 172, 9, 172, true), selftest.Scale(3, 172, 27.7, true),
		selftest.Cpy(1, 1, 1, 0, 0), selftest.Cpy(33, 64, 1, 128, 512), selftest.Cpy(70000, 60, 1, 4, 3), selftest.Cpy(5, 16, 4, 48, 80), selftest.Cpy(7, 33, 3, 0, 0),
		selftest.SoftCap(3, 509, 20, 0.25, 30), selftest.SoftCap(1, 1000, 1e-3, 1, 30), selftest.SoftCap(2, 7, 300, 1, 30), selftest.SoftCap(1, 1, 1, 2, 5))
	for _, t := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16} {
		cases = append(cases, selftest.AddRows(t, 33, 173), selftest.AddRows(t, 1, 64))
	}
	// More workgroups than one side of a grid can count.
	return append(cases, selftest.GLU("swiglu", 4_200_000, 1), selftest.Add(4_200_000, 1000, true), selftest.Mul(42, 100_000, 42, 100_000, true))
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
