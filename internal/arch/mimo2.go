package arch

// mimo2 is the layer of MiMo-V2: layers with a window have other numbers of key heads than those without, and attention sinks.
func mimo2(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.add(Op{Kind: KVAppend, A: K, B: V})
	sinks := ""
	if p.shape().Sinks {
		sinks = "attn_sinks"
	}
	p.attendTo(Q, sinks)
	if f := p.h.ValueScale; f != 1 {
		p.add(Op{Kind: Scale, Dst: Att, A: Att, Factor: f})
	}
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// readMiMo2 reads the keys of MiMo-V2: a key says which layers have a window, and these have rope with frequencies of their own. All layers with a window have sinks if one of them does, and likewise all others.
func readMiMo2(k *keys, h *Hyper) {
	readAttention(k, h)
	k.setFeedForward(h, k.ints("feed_forward_length", nil))
	readMixtureByRouters(k, h, mixtureDefaults{gating: Sigmoid, normalise: true})
	readRopes(k, h, halves)
	windowed := k.pattern("attention.sliding_window_pattern", 0, nil)
	readWindow(k, h, -1, windowed)
	readWindowedRope(k, h, windowed, windowedBase)
	h.ValueScale = k.factor("attention.value_scale", 1)
	sinks := map[bool]bool{} // by windowed[l]: whether a layer of this kind has sinks
	for l := range windowed {
		sinks[windowed[l]] = sinks[windowed[l]] || k.rows(l, "attn_sinks") > 0
	}
	for l := range windowed {
		h.Layers[l].Sinks = sinks[windowed[l]]
	}
}
