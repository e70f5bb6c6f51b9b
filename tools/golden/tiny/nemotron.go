package tiny

import "leat/gguf"

// nemotronH: layers that are attention without rope, or experts of latents, or an FFN, none of them with a gate. There is no layer of Mamba 2, which other goldens have.
func nemotronH(f *file) {
	const layers, dim, heads, headsKV, head, latent = 5, 64, 4, 2, 16, 32
	f.key("context_length", 512)
	f.key("embedding_length", dim)
	f.key("block_count", layers)
	f.key("attention.head_count", heads)
	f.key("attention.head_count_kv", []int32{headsKV, 0, headsKV, 0, 0})
	f.key("attention.key_length", head)
	f.key("attention.value_length", head)
	f.key("attention.layer_norm_rms_epsilon", 1e-5)
	f.key("feed_forward_length", []int32{0, 0, 0, 0, 96})
	f.key("ssm.inner_size", 64)
	f.key("ssm.state_size", 16)
	f.key("ssm.conv_kernel", 4)
	f.key("ssm.time_step_rank", 4)
	f.key("ssm.group_count", 1)
	f.key("expert_count", 6)
	f.key("expert_used_count", 2)
	f.key("expert_feed_forward_length", 32)
	f.key("expert_shared_feed_forward_length", 96)
	f.key("moe_latent_size", latent)
	f.sigmoids()
	f.matrix("token_embd.weight", gguf.Q8_0, 8, Vocab, dim)
	f.norm("output_norm", dim)
	f.matrix("output.weight", gguf.Q8_0, 3, Vocab, dim)
	for l := range layers {
		p := layer(l)
		f.norm(p+"attn_norm", dim)
		switch l {
		case 0, 2:
			f.matrix(p+"attn_q.weight", gguf.Q8_0, 1.5, heads*head, dim)
			f.matrix(p+"attn_k.weight", gguf.Q8_0, 1.5, headsKV*head, dim)
			f.matrix(p+"attn_v.weight", gguf.Q8_0, 1.5, headsKV*head, dim)
			f.matrix(p+"attn_output.weight", gguf.Q8_0, 1, dim, heads*head)
		case 1, 3:
			f.matrix(p+"ffn_gate_inp.weight", gguf.F32, 2, 6, dim)
			f.values(p+"exp_probs_b.bias", 0, 0.1, 6)
			f.matrix(p+"ffn_latent_down.weight", gguf.Q8_0, 1.5, latent, dim)
			f.matrix(p+"ffn_latent_up.weight", gguf.Q8_0, 1.5, dim, latent)
			f.matrix(p+"ffn_up_exps.weight", gguf.Q4_0, 1.5, 6, 32, latent)
			f.matrix(p+"ffn_down_exps.weight", gguf.Q4_0, 1, 6, latent, 32)
			f.matrix(p+"ffn_up_shexp.weight", gguf.Q8_0, 1, 96, dim)
			f.matrix(p+"ffn_down_shexp.weight", gguf.Q8_0, 1, dim, 96)
		default:
			f.matrix(p+"ffn_up.weight", gguf.Q8_0, 1, 96, dim)
			f.matrix(p+"ffn_down.weight", gguf.Q8_0, 1, dim, 96)
		}
	}
}
