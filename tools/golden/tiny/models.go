package tiny

import (
	"fmt"

	"leat/gguf"
)

// model is one golden: its architecture and how it is made.
type model struct {
	name, arch string
	make       func(f *file)
}

var models = []model{
	{"qwen2moe-nano", "qwen2moe", qwen2moe},
	{"glm4moe-nano", "glm4moe", glm4moe},
	{"gpt-oss-nano", "gpt-oss", gptOSS},
	{"deepseek2-lite-nano", "deepseek2", deepSeekV2Lite},
	{"deepseek3-nano", "deepseek2", deepSeekV3},
	{"qwen3next-nano", "qwen3next", func(f *file) { f.deltaNets(false) }},
	{"qwen35moe-nano", "qwen35moe", func(f *file) { f.deltaNets(true) }},
	{"mimo2-nano", "mimo2", mimo2},
	{"step35-nano", "step35", step35},
	{"exaone-moe-nano", "exaone-moe", exaoneMoE},
	{"phimoe-nano", "phimoe", phiMoE},
	{"gemma4-nano", "gemma4", gemma4},
	{"kimi-linear-nano", "kimi-linear", kimiLinear},
	{"gptneox-nano", "gptneox", gptNeoX},
	{"qwen2vl-nano", "qwen2vl", qwen2VL},
	{"qwen3vlmoe-nano", "qwen3vlmoe", qwen3VLMoE},
	{"glm-dsa-nano", "glm-dsa", glmDSA},
	{"nemotron-latent-nano", "nemotron_h_moe", nemotronH},
	{"iq-moe-tiny", "qwen2moe", func(f *file) {
		f.rare(gguf.IQ3_S, gguf.IQ2_S, []layerTypes{{gguf.IQ2_XXS, gguf.IQ2_XS, gguf.IQ1_S}, {gguf.IQ3_XXS, gguf.IQ1_M, gguf.IQ3_S}})
	}},
	{"bits-moe-tiny", "qwen2moe", func(f *file) {
		f.rare(gguf.Q2_0, gguf.NVFP4, []layerTypes{{gguf.TQ1_0, gguf.TQ2_0, gguf.Q1_0}, {gguf.NVFP4, gguf.NVFP4, gguf.Q2_0}})
		f.scales(1, 4)
	}},
}

// shape is what all transformers have.
type shape struct {
	layers, dim, heads, headsKV, head int
	eps, base                         float64
}

// common writes the keys of s, and the tensors outside the layers.
func (f *file) common(s shape) { f.commonOf(s, gguf.Q8_0, gguf.Q8_0) }

// commonOf is common with the types of the embeddings and of the output.
func (f *file) commonOf(s shape, embd, output gguf.Type) {
	f.key("context_length", 512)
	f.key("embedding_length", s.dim)
	f.key("block_count", s.layers)
	f.key("attention.head_count", s.heads)
	f.key("attention.head_count_kv", s.headsKV)
	f.key("attention.layer_norm_rms_epsilon", s.eps)
	f.key("rope.freq_base", s.base)
	d := int64(s.dim)
	f.matrix("token_embd.weight", embd, 8, Vocab, d) // of rows about as long as what layers add
	f.norm("output_norm", d)
	f.matrix("output.weight", output, 3, Vocab, d)
}

// attention writes a layer's usual projections.
func (f *file) attention(p string, s shape, t gguf.Type, biases bool) {
	d, q, kv := int64(s.dim), int64(s.heads*s.head), int64(s.headsKV*s.head)
	f.norm(p+"attn_norm", d)
	for _, w := range []struct {
		name string
		rows int64
	}{{"attn_q", q}, {"attn_k", kv}, {"attn_v", kv}} {
		f.matrix(p+w.name+".weight", t, 1.5, w.rows, d)
		if biases {
			f.values(p+w.name+".bias", 0, 0.3, w.rows)
		}
	}
	f.matrix(p+"attn_output.weight", t, 1, d, q)
}

// experts writes a layer's router and n experts, wide each.
func (f *file) experts(p string, dim, n, wide int64, t gguf.Type) {
	f.matrix(p+"ffn_gate_inp.weight", gguf.F32, 2, n, dim)
	f.matrix(p+"ffn_gate_exps.weight", t, 1.5, n, wide, dim)
	f.matrix(p+"ffn_up_exps.weight", t, 1.5, n, wide, dim)
	f.matrix(p+"ffn_down_exps.weight", t, 1.5, n, dim, wide)
}

// ffn writes a gated FFN.
func (f *file) ffn(p, ending string, dim, wide int64, t gguf.Type) {
	f.matrix(p+"ffn_gate"+ending+".weight", t, 1.5, wide, dim)
	f.matrix(p+"ffn_up"+ending+".weight", t, 1.5, wide, dim)
	f.matrix(p+"ffn_down"+ending+".weight", t, 1.5, dim, wide)
}

func layer(l int) string { return fmt.Sprintf("blk.%d.", l) }

// qwen2moe: biases, weights that don't come to 1, and a shared expert with a gate.
func qwen2moe(f *file) {
	s := shape{layers: 2, dim: 64, heads: 4, headsKV: 2, head: 16, eps: 1e-6, base: 1e6}
	f.common(s)
	f.key("feed_forward_length", 160) // of no layer
	f.key("expert_count", 6)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 32)
	f.key("expert_shared_feed_forward_length", 96)
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, true)
		f.norm(p+"ffn_norm", 64)
		f.experts(p, 64, 6, 32, gguf.Q4_0)
		f.matrix(p+"ffn_gate_inp_shexp.weight", gguf.F32, 1, 64)
		f.ffn(p, "_shexp", 64, 96, gguf.Q4_0)
	}
}

// layerTypes are the types of a layer's matrices.
type layerTypes struct{ attention, experts, shared gguf.Type }

// rare is qwen2moe with rows of 256 values, which most types of few bits want.
func (f *file) rare(embd, output gguf.Type, types []layerTypes) {
	s := shape{layers: len(types), dim: 256, heads: 4, headsKV: 2, head: 64, eps: 1e-6, base: 1e6}
	f.commonOf(s, embd, output)
	f.key("feed_forward_length", 256) // of no layer
	f.key("expert_count", 4)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 256)
	f.key("expert_shared_feed_forward_length", 256)
	for l, t := range types {
		p := layer(l)
		f.attention(p, s, t.attention, true)
		f.norm(p+"ffn_norm", 256)
		f.experts(p, 256, 4, 256, t.experts)
		f.matrix(p+"ffn_gate_inp_shexp.weight", gguf.F32, 1, 256)
		f.ffn(p, "_shexp", 256, 256, t.shared)
	}
}

// scales adds scales of the output, of the products of layer l, and of its n experts, and scales of activations, which nobody uses.
func (f *file) scales(l int, n int64) {
	f.values("output.scale", 0.8, 0.2, 1)
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"} {
		f.values(layer(l)+name+".scale", 0.8, 0.2, 1)
		f.values(layer(l)+name+".input_scale", 0.1, 0, 1)
	}
	for _, name := range []string{"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"} {
		f.values(layer(l)+name+".scale", 0.8, 0.3, n)
		f.values(layer(l)+name+".input_scale", 0.1, 0, n)
	}
}

// glm4moe: a leading dense layer, a router of sigmoids with a bias on the choice and a scale, a shared expert, half of each
// head turned, norms of heads; and a last layer that predicts further tokens, which nobody runs here.
func glm4moe(f *file) {
	s := shape{layers: 4, dim: 64, heads: 4, headsKV: 2, head: 32, eps: 1e-5, base: 1e6}
	f.common(s)
	f.key("nextn_predict_layers", 1)
	f.key("attention.key_length", s.head)
	f.key("attention.value_length", s.head)
	f.key("rope.dimension_count", s.head/2)
	f.sparse(mixture{dense: 160, count: 8, used: 3, shared: 1, inner: 32})
	f.sigmoids()
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, true)
		f.norm(p+"attn_q_norm", int64(s.head))
		f.norm(p+"attn_k_norm", int64(s.head))
		f.norm(p+"post_attention_norm", 64)
		if l == 0 {
			f.ffn(p, "", 64, 160, gguf.Q4_0)
			continue
		}
		f.experts(p, 64, 8, 32, gguf.Q4_0)
		f.values(p+"exp_probs_b.bias", 0, 0.3, 8)
		f.ffn(p, "_shexp", 64, 32, gguf.Q8_0)
	}
	p := layer(s.layers - 1)
	f.matrix(p+"nextn.eh_proj.weight", gguf.Q8_0, 1, 64, 128)
	f.norm(p+"nextn.enorm", 64)
	f.norm(p+"nextn.hnorm", 64)
}

// gptOSS: windows, sinks, biases everywhere, MXFP4 with rows of an odd number of blocks, YaRN.
func gptOSS(f *file) {
	s := shape{layers: 3, dim: 96, heads: 4, headsKV: 2, head: 32, eps: 1e-5, base: 150000}
	f.common(s)
	f.key("attention.key_length", s.head)
	f.key("attention.value_length", s.head)
	f.key("attention.sliding_window", 12)
	f.key("rope.scaling.type", "yarn")
	f.key("rope.scaling.factor", 16.0)
	f.key("rope.scaling.original_context_length", 32)
	f.key("feed_forward_length", 32)
	f.key("expert_count", 5)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 32)
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, true)
		f.values(p+"attn_output.bias", 0, 0.3, 96)
		f.values(p+"attn_sinks.weight", 0, 2, int64(s.heads))
		f.norm(p+"post_attention_norm", 96)
		f.experts(p, 96, 5, 32, gguf.MXFP4)
		f.values(p+"ffn_gate_inp.bias", 0, 0.3, 5)
		f.values(p+"ffn_gate_exps.bias", 0, 1, 5, 32)
		f.values(p+"ffn_up_exps.bias", 0, 1, 5, 32)
		f.values(p+"ffn_down_exps.bias", 0, 0.5, 5, 96)
	}
}

// mixture is how the layers behind a dense one are made of experts.
type mixture struct {
	dense, inner        int // inner widths, of the first layer and of an expert
	count, used, shared int // experts
}

// sparse writes the keys of a mixture whose first layer is dense.
func (f *file) sparse(m mixture) {
	f.key("feed_forward_length", m.dense)
	f.key("leading_dense_block_count", 1)
	f.key("expert_count", m.count)
	f.key("expert_used_count", m.used)
	f.key("expert_shared_count", m.shared)
	f.key("expert_feed_forward_length", m.inner)
}

// sigmoids writes those of a router that weighs by sigmoids, which are made to come to one, and scaled.
func (f *file) sigmoids() {
	f.key("expert_gating_func", 2)
	f.key("expert_weights_norm", true)
	f.key("expert_weights_scale", 2.5)
}
