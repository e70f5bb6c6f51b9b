package tiny

import "leat/gguf"

// gptNeoX: layer norms with biases, projections in one matrix, a quarter of each head turns, attention and an FFN of GELU side by side.
func gptNeoX(f *file) {
	const layers = 2
	f.key("context_length", 512)
	f.key("embedding_length", 64)
	f.key("block_count", layers)
	f.key("feed_forward_length", 96)
	f.key("rope.dimension_count", 4)
	f.key("attention.head_count", 4)
	f.key("use_parallel_residual", true)
	f.key("attention.layer_norm_epsilon", 1e-5)
	f.matrix("token_embd.weight", gguf.Q8_0, 8, Vocab, 64)
	f.matrix("output.weight", gguf.Q8_0, 3, Vocab, 64)
	f.norm("output_norm", 64)
	f.values("output_norm.bias", 0, 0.3, 64)
	for l := range layers {
		p := layer(l)
		f.norm(p+"attn_norm", 64)
		f.norm(p+"ffn_norm", 64)
		for _, w := range []struct {
			name       string
			rows, cols int64
		}{{"attn_qkv", 3 * 64, 64}, {"attn_output", 64, 64}, {"ffn_up", 96, 64}, {"ffn_down", 64, 96}} {
			f.matrix(p+w.name+".weight", gguf.Q8_0, 1.5, w.rows, w.cols)
			f.values(p+w.name+".bias", 0, 0.3, w.rows)
		}
		f.values(p+"attn_norm.bias", 0, 0.3, 64)
		f.values(p+"ffn_norm.bias", 0, 0.3, 64)
	}
}

// qwen2VL is qwen2 with a key of how positions of images would turn heads, which text does not need.
func qwen2VL(f *file) {
	s := shape{layers: 2, dim: 64, heads: 4, headsKV: 2, head: 16, eps: 1e-6, base: 1e6}
	f.common(s)
	f.key("feed_forward_length", 96)
	f.key("rope.dimension_sections", []int32{2, 3, 3, 0})
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, true)
		f.norm(p+"ffn_norm", 64)
		f.ffn(p, "", 64, 96, gguf.Q4_0)
	}
}

// qwen3VLMoE is qwen3moe with such a key.
func qwen3VLMoE(f *file) {
	s := shape{layers: 2, dim: 64, heads: 4, headsKV: 2, head: 32, eps: 1e-6, base: 5e6}
	f.common(s)
	f.key("attention.key_length", s.head)
	f.key("attention.value_length", s.head)
	f.key("feed_forward_length", 160) // of no layer
	f.key("expert_count", 6)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 32)
	f.key("rope.dimension_sections", []int32{6, 5, 5, 0})
	for l := range s.layers {
		p := layer(l)
		f.attention(p, s, gguf.Q8_0, false)
		f.norm(p+"attn_q_norm", int64(s.head))
		f.norm(p+"attn_k_norm", int64(s.head))
		f.norm(p+"ffn_norm", 64)
		f.experts(p, 64, 6, 32, gguf.Q4_0)
	}
}

// glmDSA: DeepSeek-V3's attention and experts, with an indexer that chooses all positions there are.
func glmDSA(f *file) {
	s := shape{layers: 3, dim: 64, heads: 4, headsKV: 1, eps: 1e-5, base: 1e6}
	a := latent{queryRank: 32, rank: 64, still: 32, turned: 16, value: 32}
	f.deepSeek(s, a)
	f.sparse(mixture{dense: 96, count: 8, used: 2, shared: 1, inner: 32})
	f.sigmoids()
	const heads, key = 2, 32
	f.key("attention.indexer.head_count", heads)
	f.key("attention.indexer.key_length", key)
	f.key("attention.indexer.top_k", 512)
	for l := range s.layers {
		p := layer(l)
		f.latentAttention(p, s, a)
		f.matrix(p+"indexer.attn_q_b.weight", gguf.Q8_0, 1, heads*key, int64(a.queryRank))
		f.matrix(p+"indexer.attn_k.weight", gguf.Q8_0, 1, key, 64)
		f.matrix(p+"indexer.proj.weight", gguf.F32, 1, heads, 64)
		f.norm(p+"indexer.k_norm", key)
		f.values(p+"indexer.k_norm.bias", 0, 0.3, key)
		f.norm(p+"ffn_norm", 64)
		if l == 0 {
			f.ffn(p, "", 64, 96, gguf.Q8_0)
			continue
		}
		f.experts(p, 64, 8, 32, gguf.Q8_0)
		f.values(p+"exp_probs_b.bias", 0, 0.1, 8)
		f.ffn(p, "_shexp", 64, 32, gguf.Q8_0)
	}
}
