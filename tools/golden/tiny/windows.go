package tiny

import "leat/gguf"

// windowed writes the keys and tensors outside the layers of a model whose layers differ in heads and windows. heads, headsKV and pattern have a value for each layer.
func (f *file) windowed(s shape, window int, heads, headsKV []uint32, pattern any) {
	f.common(s)
	f.key("attention.head_count", heads)
	f.key("attention.head_count_kv", headsKV)
	f.key("attention.key_length", s.head)
	f.key("attention.sliding_window", window)
	f.key("attention.sliding_window_pattern", pattern)
}

// attentionOf writes a layer's projections of the given numbers of heads, whose values are value wide.
func (f *file) attentionOf(p string, s shape, heads, headsKV uint32, value int) {
	d, h, kv := int64(s.dim), int64(heads), int64(headsKV)
	f.norm(p+"attn_norm", d)
	f.matrix(p+"attn_q.weight", gguf.Q8_0, 1.5, h*int64(s.head), d)
	f.matrix(p+"attn_k.weight", gguf.Q8_0, 1.5, kv*int64(s.head), d)
	f.matrix(p+"attn_v.weight", gguf.Q8_0, 1.5, kv*int64(value), d)
	f.matrix(p+"attn_output.weight", gguf.Q8_0, 1, d, h*int64(value))
	f.norm(p+"ffn_norm", d)
}

// normsOfHeads writes norms of the heads of queries and keys.
func (f *file) normsOfHeads(p string, s shape) {
	f.norm(p+"attn_q_norm", int64(s.head))
	f.norm(p+"attn_k_norm", int64(s.head))
}

// predictor writes what makes layer p one that predicts further tokens.
func (f *file) predictor(p string, dim int64) {
	f.matrix(p+"nextn.eh_proj.weight", gguf.Q8_0, 1, dim, 2*dim)
	f.norm(p+"nextn.enorm", dim)
	f.norm(p+"nextn.hnorm", dim)
}

// mimo2: windows with sinks, twice the key heads and frequencies of their own, keys longer than values, a third of each head turned, attention's output scaled, a dense
// layer, and a last layer that predicts further tokens.
func mimo2(f *file) {
	s := shape{layers: 5, dim: 64, heads: 4, headsKV: 1, head: 24, eps: 1e-5, base: 5e6}
	heads, headsKV := []uint32{4, 4, 4, 4, 4}, []uint32{1, 2, 2, 1, 2}
	f.windowed(s, 12, heads, headsKV, []int32{0, 1, 1, 0, 1})
	f.key("nextn_predict_layers", 1)
	f.key("attention.value_length", 16)
	f.key("attention.value_scale", 0.7)
	f.key("rope.dimension_count", 8)
	f.key("rope.freq_base_swa", 500.0)
	f.key("feed_forward_length", 160)
	f.key("expert_count", 8)
	f.key("expert_used_count", 3)
	f.key("expert_feed_forward_length", 32)
	for l := range s.layers {
		p := layer(l)
		f.attentionOf(p, s, heads[l], headsKV[l], 16)
		if headsKV[l] == 2 {
			f.values(p+"attn_sinks.weight", 0, 2, int64(heads[l]))
		}
		if l == 0 || l == 4 {
			f.ffn(p, "", 64, 160, gguf.Q4_0)
			continue
		}
		f.experts(p, 64, 8, 32, gguf.Q4_0)
		f.values(p+"exp_probs_b.bias", 0, 0.3, 8)
	}
	f.predictor(layer(4), 64)
}

// step35: windows with more heads, all of which turns, by frequencies of their own; half of the others turns, by factors; gates of heads; bounds of what experts multiply.
func step35(f *file) {
	s := shape{layers: 4, dim: 64, heads: 4, headsKV: 2, head: 16, eps: 1e-5, base: 5e6}
	heads, headsKV := []uint32{4, 6, 6, 4}, []uint32{2, 3, 3, 2}
	f.windowed(s, 10, heads, headsKV, []bool{false, true, true, false})
	f.key("attention.value_length", s.head)
	f.key("rope.freq_base_swa", 1000.0)
	f.key("feed_forward_length", 160)
	f.key("leading_dense_block_count", 1)
	f.key("moe_every_n_layers", 1)
	f.key("expert_count", 8)
	f.key("expert_used_count", 3)
	f.key("expert_feed_forward_length", 32)
	f.key("expert_shared_feed_forward_length", 32)
	f.key("expert_weights_norm", true)
	f.key("expert_weights_scale", 3.0)
	f.key("swiglu_clamp_exp", []float32{0, 0, 0.5, 0.75})
	f.key("swiglu_clamp_shexp", []float32{0.5, 0, 0, 1})
	f.values("rope_freqs.weight", 3, 0.5, 8)
	for l := range s.layers {
		p := layer(l)
		f.attentionOf(p, s, heads[l], headsKV[l], s.head)
		f.normsOfHeads(p, s)
		f.matrix(p+"attn_gate.weight", gguf.Q8_0, 1.5, int64(heads[l]), 64)
		if l == 0 {
			f.ffn(p, "", 64, 160, gguf.Q4_0)
			continue
		}
		f.experts(p, 64, 8, 32, gguf.Q4_0)
		f.values(p+"exp_probs_b.bias", 0, 0.3, 8)
		f.ffn(p, "_shexp", 64, 32, gguf.Q8_0)
	}
}

// exaoneMoE: rope in windows only, norms of heads, two shared experts, and a last layer that predicts further tokens.
func exaoneMoE(f *file) {
	s := shape{layers: 5, dim: 64, heads: 4, headsKV: 2, head: 16, eps: 1e-5, base: 1e6}
	heads, headsKV := []uint32{4, 4, 4, 4, 4}, []uint32{2, 2, 2, 2, 2}
	f.windowed(s, 12, heads, headsKV, []bool{true, true, true, false, false})
	f.key("nextn_predict_layers", 1)
	f.key("rope.scaling.type", "none")
	f.sparse(mixture{dense: 96, count: 6, used: 2, shared: 2, inner: 32})
	f.key("expert_shared_feed_forward_length", 64)
	f.sigmoids()
	for l := range s.layers {
		p := layer(l)
		f.attentionOf(p, s, heads[l], headsKV[l], s.head)
		f.normsOfHeads(p, s)
		if l == 0 || l == 4 {
			f.ffn(p, "", 64, 96, gguf.Q4_0)
			continue
		}
		f.experts(p, 64, 6, 32, gguf.Q4_0)
		f.values(p+"exp_probs_b.bias", 0, 0.3, 6)
		f.ffn(p, "_shexp", 64, 64, gguf.Q8_0)
	}
	f.predictor(layer(4), 64)
}

// phiMoE: layer norms, biases everywhere but in experts, and a router whose scores are often near each other.
func phiMoE(f *file) {
	s := shape{layers: 2, dim: 64, heads: 4, headsKV: 2, head: 16, eps: 1e-5, base: 1e4}
	f.common(s)
	f.values("output_norm.bias", 0, 0.3, 64)
	f.values("output.bias", 0, 0.3, Vocab)
	f.key("feed_forward_length", 32)
	f.key("expert_count", 6)
	f.key("expert_used_count", 2)
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, true)
		f.values(p+"attn_output.bias", 0, 0.3, 64)
		f.values(p+"attn_norm.bias", 0, 0.3, 64)
		f.norm(p+"ffn_norm", 64)
		f.values(p+"ffn_norm.bias", 0, 0.3, 64)
		f.experts(p, 64, 6, 32, gguf.Q4_0)
	}
}
