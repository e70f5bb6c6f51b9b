package arch

// lfm2 is the layer of LFM2: a short convolution, or attention whose heads of Q and K are normalised before rope.
func lfm2(p *program) {
	p.rms(Norm, X, "attn_norm")
	if p.shape().State {
		shortConv(p, Norm, Norm)
	} else {
		p.qkv(Norm)
		p.normHeads()
		p.rope()
		p.attend()
		p.linear(Norm, Att, "attn_output")
	}
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// lfm2Output is the operations after the last layer of LFM2: its files name the last norm token_embd_norm.
func lfm2Output(p *program) { p.rms(Hidden, X, "token_embd_norm") }

// shortConv adds a short convolution of a, to dst: each column of a product of a is convolved with a few taps, and has a gate before and one after.
func shortConv(p *program, dst, a Value) {
	d := p.h.EmbeddingLength
	p.linearRows(ConvB, a, "shortconv.in_proj", 0)
	p.linearRows(ConvC, a, "shortconv.in_proj", d)
	p.linearRows(ConvIn, a, "shortconv.in_proj", 2*d)
	p.add(Op{Kind: Mul, Dst: ConvIn, A: ConvB, B: ConvIn})
	p.add(Op{Kind: SSMConv, Dst: ConvB, A: ConvIn, Weight: p.weight("shortconv.conv"), Weight2: optional(p, "shortconv.conv.bias"), Cols: p.h.ShortConvTaps, Linear: true})
	p.add(Op{Kind: Mul, Dst: ConvB, A: ConvC, B: ConvB})
	p.linear(dst, ConvB, "shortconv.out_proj")
}

// readLFM2 reads the keys of LFM2, with experts or without: layers without attention have a short convolution.
func readLFM2(k *keys, h *Hyper) {
	readSomeAttention(k, h)
	readMixture(k, h, mixtureDefaults{gating: Sigmoid, normalise: true})
	readRopes(k, h, halves)
	h.stateWithoutCache()
	if h.ShortConvTaps = k.int("shortconv.l_cache", -1); h.ShortConvTaps < 1 || h.ShortConvTaps > maxTaps {
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".shortconv.l_cache", h.ShortConvTaps, maxTaps)
	}
}
