package truth

import (
	"fmt"
	"math"
	"slices"
)

// layerNorm is (x - mean) / deviation * w + b, of the tensors NAME.weight and NAME.bias.
func layerNorm(m *Model, name string, x []float64) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	w, b := m.tensor(name+".weight").values, m.tensor(name+".bias").values
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(square+m.float("attention.layer_norm_epsilon", m.eps))*float64(w[i]) + float64(b[i])
	}
	return y
}

// phiMoE is the layer of Microsoft's Phi-3.5-MoE (2024, arXiv:2404.14219).
func phiMoE(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	addTo(x, s.attend(m.attention(), l, p, layerNorm(m, p+"attn_norm", x)))
	addTo(x, m.experts(p, layerNorm(m, p+"ffn_norm", x), swiglu))
}

// gptNeoX is the layer of GPT-NeoX (Black et al. 2022, arXiv:2204.06745) where attention and FFN stand side by side: both read norms of the layer's input.
func gptNeoX(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	a := m.attention()
	qkv := m.linear(p+"attn_qkv", layerNorm(m, p+"attn_norm", x))
	wide := a.heads * a.key
	q, k, v := qkv[:wide], qkv[wide:2*wide], qkv[2*wide:]
	a.rope.turn(q, a.key, s.pos)
	a.rope.turn(k, a.key, s.pos)
	c := &s.state[l]
	s.remember(c, k, v)
	inner := m.linear(p+"ffn_up", layerNorm(m, p+"ffn_norm", x))
	for i, u := range inner { // GELU
		inner[i] = u / 2 * (1 + math.Erf(u/math.Sqrt2))
	}
	addTo(x, m.linear(p+"attn_output", a.of(q, c.keys, c.values)))
	addTo(x, m.linear(p+"ffn_down", inner))
}

// sparseMixer chooses the experts of the largest scores, one after the other, and weighs each by a softmax over those left that are within 2 % of it (2024, arXiv:2409.12136,
// without what only training adds).
func sparseMixer(scores []float64, used int) (chosen []int, weights []float64) {
	left := slices.Clone(scores)
	for range used {
		e := best(left)
		masked := slices.Clone(left)
		for i, v := range scores {
			if (scores[e]-v)/max(math.Abs(v), scores[e]) > 0.02 {
				masked[i] = math.Inf(-1)
			}
		}
		softMax(masked)
		chosen, weights = append(chosen, e), append(weights, masked[e])
		left[e] = math.Inf(-1)
	}
	return chosen, weights
}
