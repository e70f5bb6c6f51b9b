package tiny

import "leat/gguf"

// latent are the sizes of multi-head latent attention.
type latent struct{ queryRank, rank, still, turned, value int }

// deepSeek writes the keys that V2 and V3 share, and what is outside the layers.
func (f *file) deepSeek(s shape, a latent) {
	f.common(s)
	if a.queryRank > 0 {
		f.key("attention.q_lora_rank", a.queryRank)
	}
	f.key("attention.kv_lora_rank", a.rank)
	f.key("attention.key_length", a.rank+a.turned)
	f.key("attention.value_length", a.rank)
	f.key("attention.key_length_mla", a.still+a.turned)
	f.key("attention.value_length_mla", a.value)
	f.key("rope.dimension_count", a.turned)
}

// latentAttention writes a layer's projections.
func (f *file) latentAttention(p string, s shape, a latent) {
	d, heads := int64(s.dim), int64(s.heads)
	f.norm(p+"attn_norm", d)
	q, from := "attn_q", d
	if a.queryRank > 0 {
		q, from = "attn_q_b", int64(a.queryRank)
		f.matrix(p+"attn_q_a.weight", gguf.Q8_0, 1, from, d)
		f.norm(p+"attn_q_a_norm", from)
	}
	f.matrix(p+q+".weight", gguf.Q8_0, 1.5, heads*int64(a.still+a.turned), from)
	f.matrix(p+"attn_kv_a_mqa.weight", gguf.Q8_0, 1.5, int64(a.rank+a.turned), d)
	f.norm(p+"attn_kv_a_norm", int64(a.rank))
	f.matrix(p+"attn_k_b.weight", gguf.Q8_0, 1, heads, int64(a.rank), int64(a.still))
	f.matrix(p+"attn_v_b.weight", gguf.Q8_0, 1, heads, int64(a.value), int64(a.rank))
	f.matrix(p+"attn_output.weight", gguf.Q8_0, 1, d, heads*int64(a.value))
}

// deepSeekV2Lite: queries without a latent, a softmax router whose weights don't come to 1, groups by their best expert; the
// cache's heads are as large as the real ones.
func deepSeekV2Lite(f *file) {
	s := shape{layers: 2, dim: 64, heads: 2, headsKV: 1, eps: 1e-6, base: 10000}
	a := latent{rank: 512, still: 32, turned: 64, value: 32}
	f.deepSeek(s, a)
	f.sparse(mixture{dense: 96, count: 8, used: 2, shared: 2, inner: 32})
	f.key("expert_weights_scale", 4.0)
	f.key("expert_group_count", 4)
	f.key("expert_group_used_count", 2)
	for l := range s.layers {
		p := layer(l)
		f.latentAttention(p, s, a)
		f.norm(p+"ffn_norm", 64)
		if l == 0 {
			f.ffn(p, "", 64, 96, gguf.Q8_0)
			continue
		}
		f.experts(p, 64, 8, 32, gguf.Q8_0)
		f.ffn(p, "_shexp", 64, 64, gguf.Q8_0)
	}
}

// deepSeekV3: a latent for queries, YaRN that scales the scores, a router of sigmoids with a bias on the choice, groups by
// their two best experts.
func deepSeekV3(f *file) {
	s := shape{layers: 2, dim: 64, heads: 4, headsKV: 1, eps: 1e-6, base: 10000}
	a := latent{queryRank: 32, rank: 64, still: 32, turned: 16, value: 24}
	f.deepSeek(s, a)
	f.key("rope.scaling.type", "yarn")
	f.key("rope.scaling.factor", 8.0)
	f.key("rope.scaling.original_context_length", 64)
	f.key("rope.scaling.yarn_log_multiplier", 0.1)
	f.sparse(mixture{dense: 96, count: 12, used: 3, shared: 1, inner: 32})
	f.sigmoids()
	f.key("expert_group_count", 4)
	f.key("expert_group_used_count", 2)
	for l := range s.layers {
		p := layer(l)
		f.latentAttention(p, s, a)
		f.norm(p+"ffn_norm", 64)
		if l == 0 {
			f.ffn(p, "", 64, 96, gguf.Q8_0)
			continue
		}
		f.experts(p, 64, 12, 32, gguf.Q8_0)
		f.values(p+"exp_probs_b.bias", 0, 0.1, 12)
		f.ffn(p, "_shexp", 64, 32, gguf.Q8_0)
	}
}
