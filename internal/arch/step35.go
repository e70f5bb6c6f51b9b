package arch

// step35 is the layer of Step-3.5: the heads of Q and K are normalised before rope, and each head of attention's output has a gate.
func step35(p *program) {
	s := p.shape()
	p.rms(Norm, X, "attn_norm")
	p.linear(HeadGate, Norm, "attn_gate")
	p.qkv(Norm)
	p.normHeads()
	p.rope()
	p.attend()
	p.add(Op{Kind: SigmoidMul, Dst: Att, A: Att, B: HeadGate, Heads: s.HeadCount})
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// readStep35 reads the keys of Step-3.5: a key says which layers have a window. Rope turns all values of heads in these layers, by frequencies of their own, and half of
// the values in the other layers.
func readStep35(k *keys, h *Hyper) {
	readAttention(k, h)
	k.setFeedForward(h, k.ints("feed_forward_length", nil))
	readMixtureByRouters(k, h, mixtureDefaults{gating: Sigmoid})
	for _, name := range []string{"leading_dense_block_count", "moe_every_n_layers"} {
		k.int(name, 0) // readMixtureByRouters knows: a layer with a router has experts
	}
	readRopes(k, h, halves)
	windowed := k.pattern("attention.sliding_window_pattern", 0, nil)
	readWindow(k, h, -1, windowed)
	if readWindowedRope(k, h, windowed, windowedBase); k.err != nil {
		return
	}
	full, near := &h.Ropes[0], &h.Ropes[1]
	near.Dim = k.int("rope.dimension_count_swa", near.Dim)
	k.checkRopeDim("rope.dimension_count_swa", near.Dim, shortestKey(h))
	full.Dim /= 2
	k.checkRopeDim("rope.dimension_count", full.Dim, shortestKey(h))
	experts, shared := k.floats("swiglu_clamp_exp"), k.floats("swiglu_clamp_shexp")
	for l := range h.Layers {
		if h.Layers[l].Bounds = (Bounds{experts[l], shared[l]}); min(experts[l], shared[l]) < 0 {
			k.fail("bounds of layer %d: found %g of experts and %g of the FFN, wanted 0 or more", l, experts[l], shared[l])
		}
	}
}
