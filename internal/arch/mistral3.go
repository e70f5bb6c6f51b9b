package arch

// readMistral3 reads the keys of Mistral 3: queries may grow with their position.
func readMistral3(k *keys, h *Hyper) {
	readLlama(k, h)
	scale := k.atLeastZero("attention.temperature_scale", 0)
	if k.err != nil || scale == 0 {
		return
	}
	r := &h.Ropes[0]
	if h.RowScale = (RowScale{Factor: scale, Length: r.OrigContext}); r.OrigContext < 1 {
		k.fail("key %q: found 0, wanted at least 1", k.arch+".rope.scaling.original_context_length")
	}
}

// mistral3 is the layer of Mistral 3.
func mistral3(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.add(Op{Kind: KVAppend, A: K, B: V})
	if p.h.RowScale.Factor > 0 {
		p.add(Op{Kind: ScaleRows, Dst: Q, A: Q})
	}
	p.attendTo(Q, "")
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}
