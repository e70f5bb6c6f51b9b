package arch

import "math"

// afmoe is the layer of Arcee's Trinity: as that of Gemma 3, with a gate on attention's output, and experts.
func afmoe(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.linear(AttGate, Norm, "attn_gate")
	p.qkv(Norm)
	p.normHeads()
	p.rope()
	p.attend()
	p.add(Op{Kind: SigmoidMul, Dst: Att, A: Att, B: AttGate})
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	if p.shape().Experts {
		p.mixture(Out, None, Norm)
	} else {
		p.ffn(Out, Norm, SwiGLU)
	}
	p.rms(Out, Out, "post_ffw_norm")
	p.addX(Out)
}

// readAFMoE reads the keys of Arcee's Trinity: three of four layers have a window, if there is one, and only these have rope.
func readAFMoE(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{gating: Sigmoid, normalise: true})(k, h)
	if k.err != nil {
		return
	}
	windowed := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	readWindow(k, h, 0, windowed)
	ropeOnly(h, windowed)
	h.EmbeddingScale = float32(k.positive("embedding_scale", math.Sqrt(float64(h.EmbeddingLength))))
}
