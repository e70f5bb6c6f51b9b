package tiny

import "leat/gguf"

// deltaNets writes Qwen3-Next, or Qwen3.5 with its split betas and alphas and a layer that predicts further tokens: three gated delta nets to
// one layer of gated attention, a quarter of whose heads turns; a shared expert with a gate.
func (f *file) deltaNets(split bool) {
	const dim, head, keyHeads, heads, taps = 64, 32, 2, 4, 4
	s := shape{layers: 4, dim: dim, heads: 2, headsKV: 1, head: 32, eps: 1e-6, base: 1e6}
	if split {
		s.layers++
	}
	f.common(s)
	if split {
		f.key("nextn_predict_layers", 1)
		f.key("rope.dimension_sections", []int32{2, 1, 1, 0})
	}
	f.key("attention.key_length", s.head)
	f.key("attention.value_length", s.head)
	f.key("rope.dimension_count", s.head/4)
	f.key("full_attention_interval", 4)
	f.key("ssm.conv_kernel", taps)
	f.key("ssm.state_size", head)
	f.key("ssm.group_count", keyHeads)
	f.key("ssm.time_step_rank", heads)
	f.key("ssm.inner_size", heads*head)
	f.key("feed_forward_length", 96)
	f.key("expert_count", 6)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 32)
	f.key("expert_shared_feed_forward_length", 32)
	for l := range s.layers {
		p := layer(l)
		if l%4 == 3 || l == 4 {
			f.norm(p+"attn_norm", dim)
			f.matrix(p+"attn_q.weight", gguf.Q8_0, 1.5, int64(2*s.heads*s.head), dim)
			f.matrix(p+"attn_k.weight", gguf.Q8_0, 1.5, int64(s.headsKV*s.head), dim)
			f.matrix(p+"attn_v.weight", gguf.Q8_0, 1.5, int64(s.headsKV*s.head), dim)
			f.norm(p+"attn_q_norm", int64(s.head))
			f.norm(p+"attn_k_norm", int64(s.head))
			f.matrix(p+"attn_output.weight", gguf.Q8_0, 1.5, dim, int64(s.heads*s.head))
		} else {
			const channels = 2*keyHeads*head + heads*head
			f.norm(p+"attn_norm", dim)
			f.matrix(p+"attn_qkv.weight", gguf.Q8_0, 1.5, channels, dim)
			f.matrix(p+"attn_gate.weight", gguf.Q8_0, 1.5, heads*head, dim)
			f.values(p+"ssm_conv1d.weight", 0, 0.5, channels, taps)
			f.values(p+"ssm_dt.bias", 0, 1, heads)
			f.values(p+"ssm_a", -0.3, 0.05, heads)
			if split {
				f.matrix(p+"ssm_beta.weight", gguf.Q8_0, 1.5, heads, dim)
				f.matrix(p+"ssm_alpha.weight", gguf.Q8_0, 1.5, heads, dim)
			} else {
				f.matrix(p+"ssm_ba.weight", gguf.Q8_0, 1.5, 2*heads, dim)
			}
			f.norm(p+"ssm_norm", head)
			f.matrix(p+"ssm_out.weight", gguf.Q8_0, 1, dim, heads*head)
		}
		f.norm(p+"post_attention_norm", dim)
		f.experts(p, dim, 6, 32, gguf.Q4_0)
		f.matrix(p+"ffn_gate_inp_shexp.weight", gguf.F32, 1, dim)
		f.ffn(p, "_shexp", dim, 32, gguf.Q8_0)
	}
	if split {
		f.matrix(layer(4)+"nextn.eh_proj.weight", gguf.Q8_0, 1, dim, 2*dim)
		f.norm(layer(4)+"nextn.enorm", dim)
		f.norm(layer(4)+"nextn.hnorm", dim)
	}
}
