package truth

import "fmt"

// architectures are the layers that this package knows.
var architectures = map[string]func(s *Session, l int, x []float64){
	"llama": transformer, "qwen2": transformer, "qwen3": transformer, "qwen3moe": transformer,
	"qwen2moe": transformer, "glm4moe": transformer, "gpt-oss": gptOSS, "deepseek2": deepSeek,
	"qwen3next": qwen3next, "qwen35moe": qwen3next, "mimo2": mimo2, "step35": step35, "exaone-moe": exaoneMoE,
	"phimoe": phiMoE, "gemma4": gemma4, "kimi-linear": kimiLinear,
	"gptneox": gptNeoX, "qwen2vl": transformer, "qwen3vlmoe": transformer, "glm-dsa": deepSeek, "nemotron_h_moe": nemotronH,
}

// transformer is llama's layer (Touvron et al. 2023, arXiv:2302.13971); qwen2 adds biases to it, qwen3 norms of heads, Mixtral
// and qwen3moe experts, qwen2moe a shared one; glm4moe has all of these but where its first layers are dense.
func transformer(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	addTo(x, s.attend(m.attention(), l, p, m.norm(p+"attn_norm", x)))
	norm := "ffn_norm"
	if m.arch == "glm4moe" {
		norm = "post_attention_norm"
	}
	h := m.norm(p+norm, x)
	if m.has(p + "ffn_gate_inp.weight") {
		addTo(x, m.experts(p, h, swiglu))
		addTo(x, m.shared(p, h))
		return
	}
	addTo(x, m.ffn(p, "", h))
}
