package arch

// jamba is the layer of Jamba: Mamba 1, or attention without rope.
func jamba(p *program) {
	p.rms(Norm, X, "attn_norm")
	if p.shape().State {
		mamba1Mixer(p, Norm, Norm)
	} else {
		p.attention(Norm, Norm)
	}
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// graniteHybrid is the layer of Granite 4: Mamba 2, or attention, which most models have without rope.
func graniteHybrid(p *program) {
	p.rms(Norm, X, "attn_norm")
	if p.shape().State {
		mamba2Mixer(p, Norm, Norm, true)
	} else {
		p.attention(Norm, Norm)
	}
	p.addX(Norm)
	p.feedForward("ffn_norm")
}

// nemotronH is the layer of Nemotron-H: one of Mamba 2, attention without rope, experts and FFN.
func nemotronH(p *program) {
	p.rms(Norm, X, "attn_norm")
	switch s := p.shape(); {
	case s.State:
		mamba2Mixer(p, Norm, Norm, true)
	case s.Cache:
		p.attention(Norm, Norm)
	case s.Experts:
		plainExperts(p, Norm, ReLU2)
		return
	default:
		p.plainFFN(Norm, Norm, ReLU2)
	}
	p.addX(Norm)
}

// falconH1 is the layer of Falcon-H1: Mamba 2 and attention read the same row. Mamba comes first, so that in the last layer only rows whose logits are wanted
// pass through attention.
func falconH1(p *program) {
	p.rms(Norm, X, "attn_norm")
	mamba2Mixer(p, Out, Norm, p.hasWeight("ssm_norm"))
	p.addX(Out)
	p.attention(Norm, Norm)
	p.addX(Norm)
	norm := p.prefix + "ffn_norm" // Hugging Face's converter leaves out .weight
	if !p.has(norm) {
		norm += ".weight"
	}
	p.add(Op{Kind: RMSNorm, Dst: Norm, A: X, Weight: norm, Heads: 1, Cols: p.width(X)})
	p.ffn(Norm, Norm, SwiGLU)
	p.addX(Norm)
}

// attention adds attention that reads a, to dst, with the layer's rope.
func (p *program) attention(dst, a Value) {
	p.qkv(a)
	p.rope()
	p.attend()
	p.linear(dst, Att, "attn_output")
}

// readJamba reads the keys of Jamba: layers without attention are Mamba 1, and layers with a router have experts.
func readJamba(k *keys, h *Hyper) {
	readSomeAttention(k, h)
	k.setFeedForward(h, k.ints("feed_forward_length", nil))
	readMixtureByRouters(k, h, mixtureDefaults{})
	readMamba1(k, h)
	h.stateWithoutCache()
}

// readGraniteHybrid reads the keys of Granite 4: layers without attention are Mamba 2, and layers with a router have experts. rope.scaling.finetuned says whether
// queries and keys are rotated.
func readGraniteHybrid(k *keys, h *Hyper) {
	readSomeAttention(k, h)
	k.setFeedForward(h, k.ints("feed_forward_length", nil))
	readMixtureByRouters(k, h, mixtureDefaults{normalise: true})
	readMamba2(k, h)
	h.stateWithoutCache()
	if k.bool("rope.scaling.finetuned", true) && shortestKey(h) > 0 {
		readRopes(k, h, adjacent)
	}
	readGraniteScales(k, h)
}

// leastTimeStep is Mamba.DeltaMin of Nemotron-H. No key has it: transformers takes its configuration's time_step_min, which is 0.001 in all models.
const leastTimeStep = 0.001

// readNemotronH reads the keys of Nemotron-H: the tensors of a layer say which one of Mamba 2, attention, experts and FFN it is, and how wide its FFN.
func readNemotronH(k *keys, h *Hyper) {
	readSomeAttention(k, h)
	k.ints("feed_forward_length", make([]int, k.layers)) // files with FFNs may say 0
	for l := range h.Layers {
		h.Layers[l].State = k.rows(l, "ssm_in") > 0
		h.Layers[l].FeedForwardLength = k.rows(l, "ffn_up")
	}
	readMixtureByRouters(k, h, mixtureDefaults{gating: Sigmoid, normalise: true})
	if l := firstExperts(h); l >= 0 {
		h.Experts.LatentLength = k.rows(l, "ffn_latent_down")
		if n := k.int("moe_latent_size", h.Experts.LatentLength); n != h.Experts.LatentLength {
			k.fail("key %q: found %d, wanted %d, the rows of tensor \"blk.%d.ffn_latent_down.weight\"", k.arch+".moe_latent_size", n, h.Experts.LatentLength, l)
		}
	}
	readMamba2(k, h)
	h.Mamba.DeltaMin = leastTimeStep
}

// readFalconH1 reads the keys of Falcon-H1, whose layers all have Mamba 2, attention with rope and an FFN.
func readFalconH1(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	readMamba2(k, h)
	h.stateInAll()
}

// stateWithoutCache gives a state to the layers without keys and values in the KV cache.
func (h *Hyper) stateWithoutCache() {
	for l := range h.Layers {
		h.Layers[l].State = !h.Layers[l].Cache
	}
}
