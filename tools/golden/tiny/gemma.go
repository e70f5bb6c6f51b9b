package tiny

import "leat/gguf"

// gemma4: heads of two sizes, windows and all positions, inputs that layers have of their own, last layers that attend over keys and values of earlier ones and whose FFN is twice as wide.
func gemma4(f *file) {
	const dim, heads, input, shared = 64, 4, 16, 3
	windowed := []bool{true, true, false, true, false, true}
	layers, keyHeads, wide := len(windowed), []int32{2, 2, 1, 2, 1, 2}, []int32{96, 96, 96, 192, 192, 192}
	for _, k := range []struct {
		name  string
		value any
	}{
		{"context_length", 512}, {"embedding_length", dim}, {"block_count", layers}, {"feed_forward_length", wide}, {"attention.head_count", heads},
		{"attention.head_count_kv", keyHeads}, {"attention.layer_norm_rms_epsilon", 1e-6}, {"rope.freq_base", 1e6}, {"rope.freq_base_swa", 1e4}, {"attention.key_length", 32},
		{"attention.value_length", 32}, {"attention.key_length_swa", 16}, {"attention.value_length_swa", 16}, {"rope.dimension_count", 32}, {"rope.dimension_count_swa", 16},
		{"attention.sliding_window", 12}, {"attention.sliding_window_pattern", windowed}, {"attention.shared_kv_layers", shared}, {"embedding_length_per_layer_input", input},
		{"final_logit_softcapping", 30.0},
	} {
		f.key(k.name, k.value)
	}
	f.matrix("token_embd.weight", gguf.Q8_0, 1, Vocab, dim)
	f.norm("output_norm", dim)
	f.matrix("per_layer_token_embd.weight", gguf.Q4_0, 1, Vocab, int64(layers*input))
	f.matrix("per_layer_model_proj.weight", gguf.BF16, 1, int64(layers*input), dim)
	f.norm("per_layer_proj_norm", input)
	f.values("rope_freqs.weight", 1.5, 0.2, 16)
	for l, near := range windowed {
		p, head, kv := layer(l), int64(32), int64(keyHeads[l])
		if near {
			head = 16
		}
		f.norm(p+"attn_norm", dim)
		f.matrix(p+"attn_q.weight", gguf.Q8_0, 1.5, heads*head, dim)
		f.norm(p+"attn_q_norm", head)
		if l < layers-shared {
			f.matrix(p+"attn_k.weight", gguf.Q8_0, 1.5, kv*head, dim)
			f.matrix(p+"attn_v.weight", gguf.Q8_0, 1.5, kv*head, dim)
			f.norm(p+"attn_k_norm", head)
		}
		f.matrix(p+"attn_output.weight", gguf.Q8_0, 1, dim, heads*head)
		for _, name := range []string{"post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"} {
			f.norm(p+name, dim)
		}
		f.ffn(p, "", dim, int64(wide[l]), gguf.Q8_0)
		f.matrix(p+"inp_gate.weight", gguf.F16, 1.5, input, dim)
		f.matrix(p+"proj.weight", gguf.F16, 1, dim, input)
		f.values(p+"layer_output_scale.weight", 0.8, 0.1, 1)
	}
}
