package truth

import "fmt"

// gptOSS is the layer of OpenAI's gpt-oss (2025, arXiv:2508.10925): every other layer, from the first on, sees a window only; each head has
// a sink; all products have biases; the experts' gated unit is clamped.
func gptOSS(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	a := m.attention()
	a.sinks = m.tensor(p + "attn_sinks.weight").values
	if l%2 == 0 {
		a.window = m.int("attention.sliding_window")
	}
	addTo(x, s.attend(a, l, p, m.norm(p+"attn_norm", x)))
	addTo(x, m.experts(p, m.norm(p+"post_attention_norm", x), clampedSwiGLU))
}

func clampedSwiGLU(gate, up []float64) []float64 {
	const alpha, limit = 1.702, 7
	y := make([]float64, len(gate))
	for i := range y {
		g, u := min(gate[i], limit), max(-limit, min(up[i], limit))
		y[i] = g * sigmoid(alpha*g) * (u + 1)
	}
	return y
}
