package tiny

import "leat/gguf"

// kimiLinear: Kimi delta attention, whose convolutions have the shape that converters give them, and in every second layer latent attention without rope; experts behind a dense layer.
func kimiLinear(f *file) {
	const dim, heads, head, taps = 64, 4, 16, 4
	s := shape{layers: 4, dim: dim, heads: heads, headsKV: 1, eps: 1e-5, base: 10000}
	a := latent{rank: 32, still: 32, turned: 16, value: 24}
	f.deepSeek(s, a)
	f.key("attention.head_count_kv", []int32{0, 1, 0, 1})
	f.key("attention.value_length", head+8) // as converters write it: of nothing
	f.key("ssm.conv_kernel", taps)
	f.key("kda.head_dim", head)
	f.sparse(mixture{dense: 96, count: 8, used: 5, shared: 1, inner: 32})
	f.key("expert_gating_func", 2)
	f.key("expert_weights_scale", 2.446)
	for l := range s.layers {
		p := layer(l)
		if l%2 == 1 {
			f.latentAttention(p, s, a)
		} else {
			f.norm(p+"attn_norm", dim)
			for _, part := range []string{"q", "k", "v"} {
				f.matrix(p+"attn_"+part+".weight", gguf.Q8_0, 1.5, heads*head, dim)
				f.values(p+"ssm_conv1d_"+part+".weight", 0, 0.5, 1, heads*head, 1, taps)
			}
			for _, part := range []string{"f", "g"} {
				f.matrix(p+"ssm_"+part+"_a.weight", gguf.Q8_0, 1, head, dim)
				f.matrix(p+"ssm_"+part+"_b.weight", gguf.F16, 2, heads*head, head)
			}
			f.matrix(p+"ssm_beta.weight", gguf.Q8_0, 1.5, heads, dim)
			f.values(p+"ssm_dt.bias", 0, 1, heads*head)
			f.values(p+"ssm_a", -0.3, 0.05, 1, 1, heads, 1)
			f.norm(p+"ssm_norm", head)
			f.matrix(p+"attn_output.weight", gguf.Q8_0, 1, dim, heads*head)
		}
		f.norm(p+"ffn_norm", dim)
		if l == 0 {
			f.ffn(p, "", dim, 96, gguf.Q8_0)
			continue
		}
		f.experts(p, dim, 8, 32, gguf.Q8_0)
		f.values(p+"exp_probs_b.bias", 0, 0.1, 8)
		f.ffn(p, "_shexp", dim, 32, gguf.Q8_0)
	}
}
