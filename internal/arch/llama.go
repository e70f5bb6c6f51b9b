package arch

// llama is the layer of llama (Touvron et al. 2023).
func llama(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// seedOSS is the layer of Seed-OSS.
func seedOSS(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("post_attention_norm")
}

// qwen3 is the layer of Qwen3: the heads of Q and K are normalised before rope.
func qwen3(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.normHeads()
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// hunyuan is the layer of Hunyuan: the heads of Q and K are normalised after rope.
func hunyuan(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.normHeads()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// glm4moe is the layer of GLM-4.5: some of its models normalise the heads of Q and K.
func glm4moe(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	if p.hasWeight("attn_q_norm") {
		p.normHeads()
	}
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("post_attention_norm")
}

// gptOSS is the layer of gpt-oss: attention has sinks.
func gptOSS(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.add(Op{Kind: KVAppend, A: K, B: V})
	p.attendTo(Q, "attn_sinks")
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("post_attention_norm")
}

// olmoe is the layer of OLMoE and MiniMax-M2: the whole rows of Q and K are normalised before rope.
func olmoe(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	normRows(p)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// phi3 is the layer of Phi-3: gate and up are one matrix.
func phi3(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.fusedFFN(Norm, Norm, SwiGLU)
	p.addX(Norm)
}

// phiMoE is the layer of Phi-3.5-MoE, with layer norms.
func phiMoE(p *program) {
	p.ln(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.ln(Norm, X, "ffn_norm")
	p.mixture(X, X, Norm)
}

// glm4 is the layer of GLM-4: what is added to the residual stream is normalised too, and gate and up are one matrix.
func glm4(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.fusedFFN(Norm, Norm, SwiGLU)
	p.rms(Norm, Norm, "post_ffw_norm")
	p.addX(Norm)
}

// olmo2 is the layer of OLMo 2 and 3: nothing is normalised before attention and FFN, but what they add to the residual stream is, and the whole rows of
// Q and K are.
func olmo2(p *program) {
	p.qkv(X)
	normRows(p)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.ffn(Norm, X, SwiGLU)
	p.rms(Norm, Norm, "post_ffw_norm")
	p.addX(Norm)
}

// exaone4 is the layer of EXAONE 4: as that of OLMo 2, but the heads of Q and K are normalised one by one.
func exaone4(p *program) {
	p.qkv(X)
	p.normHeads()
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.ffn(Norm, X, SwiGLU)
	p.rms(Norm, Norm, "post_ffw_norm")
	p.addX(Norm)
}

// normHeads adds RMS norms of each head of Q and of K.
func (p *program) normHeads() {
	s := p.shape()
	p.headRMS(Q, "attn_q_norm", s.HeadCount, s.KeyLength)
	p.headRMS(K, "attn_k_norm", s.HeadCountKV, s.KeyLength)
}

// normRows adds RMS norms of the whole rows of Q and of K.
func normRows(p *program) {
	p.headRMS(Q, "attn_q_norm", 1, p.width(Q))
	p.headRMS(K, "attn_k_norm", 1, p.width(K))
}

// readLlama reads the keys of llama, with or without experts. Files of Mistral's models may have yarn_log_multiplier: YaRN's attention temperature is divided by another one,
// whose slope over log(factor) is yarn_log_multiplier times as steep.
func readLlama(k *keys, h *Hyper) {
	withExperts(adjacent, mixtureDefaults{normalise: true})(k, h)
	log := k.atLeastZero("rope.scaling.yarn_log_multiplier", 0)
	if k.err != nil {
		return
	}
	if r := &h.Ropes[0]; r.ExtFactor != 0 {
		r.AttnFactor /= 1 + log*(yarnTemperature(1/r.Scale)-1)
	}
}

// readSmolLM3 reads the keys of SmolLM3: every fourth layer has no rope.
func readSmolLM3(k *keys, h *Hyper) {
	withDenseFFN(adjacent)(k, h)
	for l := range h.Layers {
		if !allButLast(l, 4) {
			h.Layers[l].Rope = NoRope
		}
	}
}

// readPhi3 reads the keys of Phi-3: all layers have the window, if there is one.
func readPhi3(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	readWindow(k, h, 0, k.everyLayer())
}

// readOLMo2 reads the keys of OLMo 2 and 3: if there is a window, three of four layers have it, and their rope has no scaling.
func readOLMo2(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	if k.err != nil {
		return
	}
	windowed := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	if readWindow(k, h, 0, windowed); len(h.Masks) > 1 {
		readWindowedRope(k, h, windowed, h.Ropes[0].Base)
	}
}

// readEXAONE4 reads the keys of EXAONE 4: three of four layers have a window, if there is one, and then only these have rope. Files of the largest model may leave
// the window out.
func readEXAONE4(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	window := 0
	if h.BlockCount == 64 {
		window = 4096
	}
	windowed := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	if readWindow(k, h, window, windowed); len(h.Masks) == 1 {
		return
	}
	ropeOnly(h, windowed)
}

// readEXAONEMoE reads the keys of K-EXAONE: three of four layers have a window, and only these have rope.
func readEXAONEMoE(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{gating: Sigmoid})(k, h)
	windowed := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	readWindow(k, h, -1, windowed)
	ropeOnly(h, windowed)
}

// readPhiMoE reads the keys of Phi-3.5-MoE: all layers have the window, if there is one.
func readPhiMoE(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{gating: SparseMixer})(k, h)
	readWindow(k, h, 0, k.everyLayer())
}

// readGPTOSS reads the keys of gpt-oss: every second layer has a window, and YaRN's range of pairs is not rounded.
func readGPTOSS(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{gating: SoftMaxChosen, clamped: true})(k, h)
	if k.err != nil {
		return
	}
	h.Ropes[0].Exact = true
	windowed := k.everyLayer()
	for l := range windowed {
		windowed[l] = allButLast(l, 2)
	}
	readWindow(k, h, -1, windowed)
}

// readErnieMoE reads the keys of ERNIE 4.5 with experts: from layer leading_dense_block_count on, every interleave_moe_layer_step-th layer has experts.
func readErnieMoE(k *keys, h *Hyper) {
	withExperts(adjacent, mixtureDefaults{normalise: true})(k, h)
	step := max(1, k.int("interleave_moe_layer_step", 1))
	for l := range h.Layers {
		s := &h.Layers[l]
		s.Experts = s.Experts && (l+1)%step == 0
	}
}
