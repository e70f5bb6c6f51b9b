package truth

import (
	"fmt"
	"math"
)

// nemotronH is a layer of Nemotron-H (NVIDIA 2025, arXiv:2504.03624) or of Nemotron 3, whose experts may read latents of a row (arXiv:2512.20856), but for the layers of Mamba 2.
func nemotronH(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	h := m.norm(p+"attn_norm", x)
	switch {
	case m.has(p + "attn_output.weight"):
		key := m.int("attention.key_length")
		a := attention{heads: m.int("attention.head_count"), headsKV: m.tensor(p + "attn_k.weight").shape[0] / key, key: key, value: key, scale: 1 / math.Sqrt(float64(key))}
		addTo(x, s.attend(a, l, p, h))
	case m.has(p + "ffn_gate_inp.weight"):
		narrow := h
		if m.has(p + "ffn_latent_down.weight") {
			narrow = m.linear(p+"ffn_latent_down", h)
		}
		out := make([]float64, len(narrow))
		chosen, weights := m.route(p, m.linear(p+"ffn_gate_inp", h))
		for i, e := range chosen {
			for j, v := range m.expert(p+"ffn_down_exps", e, squaredReLU(m.expert(p+"ffn_up_exps", e, narrow))) {
				out[j] += weights[i] * v
			}
		}
		if m.has(p + "ffn_latent_up.weight") {
			out = m.linear(p+"ffn_latent_up", out)
		}
		addTo(x, out)
		addTo(x, m.linear(p+"ffn_down_shexp", squaredReLU(m.linear(p+"ffn_up_shexp", h))))
	default:
		addTo(x, m.linear(p+"ffn_down", squaredReLU(m.linear(p+"ffn_up", h))))
	}
}

func squaredReLU(x []float64) []float64 {
	for i, v := range x {
		x[i] = max(v, 0) * max(v, 0)
	}
	return x
}
