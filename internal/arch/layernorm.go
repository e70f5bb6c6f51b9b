package arch

// readNoRope reads the keys of architectures whose layers all have attention without rope and a dense FFN.
func readNoRope(k *keys, h *Hyper) {
	readAttention(k, h)
	k.setFeedForward(h, k.ints("feed_forward_length", nil))
}

// readBLOOM reads the keys of BLOOM: positions count only by ALiBi.
func readBLOOM(k *keys, h *Hyper) {
	readNoRope(k, h)
	h.ALiBi = k.positive("attention.max_alibi_bias", 8)
}

// readStarCoder2 reads the keys of StarCoder2: all layers have the window, if there is one.
func readStarCoder2(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	readWindow(k, h, 0, k.everyLayer())
}

// readPhi2 reads the keys of Phi-1 and Phi-2. Converters write four times embedding_length for the width of FFNs, whatever it is: ffn_up tells.
func readPhi2(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	for l := range h.Layers {
		if n := k.rows(l, "ffn_up"); n > 0 {
			h.Layers[l].FeedForwardLength = n
		}
	}
}

// readStableLM reads the keys of StableLM. Its converters wrote use_parallel_residual for models that are not parallel, too: ffn_norm decides.
func readStableLM(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	k.bool("use_parallel_residual", true)
}

// readGPTNeoX reads the keys of GPT-NeoX.
func readGPTNeoX(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	h.Parallel = k.bool("use_parallel_residual", true)
}

// readOLMo reads the keys of OLMo.
func readOLMo(k *keys, h *Hyper) {
	withDenseFFN(adjacent)(k, h)
	h.ClampQKV = float32(k.atLeastZero("attention.clamp_kqv", 0))
}

// readCohere reads the keys of Command R.
func readCohere(k *keys, h *Hyper) {
	withDenseFFN(adjacent)(k, h)
	if h.LogitScale = k.factor("logit_scale", 0); h.LogitScale == 0 {
		k.fail("key %q: found none, or 0; wanted the factor of the logits", k.arch+".logit_scale")
	}
}

// readCohere2 reads the keys of Command R7B and Command A: three of four layers have a window, and only these have rope.
func readCohere2(k *keys, h *Hyper) {
	readCohere(k, h)
	windowed := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	readWindow(k, h, -1, windowed)
	ropeOnly(h, windowed)
}

// positionEmbd is the tensor with an embedding for each position.
const positionEmbd = "position_embd.weight"

// addPositions adds to X, before the first layer, the embedding of each row's position.
func addPositions(p *program) { p.add(Op{Kind: AddRows, Dst: X, Weight: positionEmbd}) }

// normEmbeddings adds a layer norm of the embeddings, before the first layer.
func normEmbeddings(p *program) { p.ln(X, X, "token_embd_norm") }

// normOutput adds the layer norm after the last layer.
func normOutput(p *program) { p.ln(Hidden, X, "output_norm") }

// normOutputPlainly is [normOutput] without weights.
func normOutputPlainly(p *program) { p.ln(Hidden, X, "") }

// layerNormed is the layer of GPT-2 and many after it: with layer norms, and f in an FFN without a gate.
func layerNormed(f Activation) func(*program) {
	return func(p *program) {
		p.ln(Norm, X, "attn_norm")
		p.qkv(Norm)
		p.rope()
		p.attend()
		p.linear(Norm, Att, "attn_output")
		p.addX(Norm)
		p.ln(Norm, X, "ffn_norm")
		p.plainFFN(Norm, Norm, f)
		p.addX(Norm)
	}
}

// neoXLayers is the number of layers of GPT-NeoX itself, whose GELU is by tanh. Pythia and other models after it have other numbers, and GELU by erf.
const neoXLayers = 44

// gptNeoX is the layer of GPT-NeoX: attention and FFN may read two norms of the same row.
func gptNeoX(p *program) {
	p.ln(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Out, Att, "attn_output")
	if p.h.Parallel {
		p.ln(Norm, X, "ffn_norm")
		p.addX(Out)
	} else {
		p.addX(Out)
		p.ln(Norm, X, "ffn_norm")
	}
	gelu := GELUErf
	if p.h.BlockCount == neoXLayers {
		gelu = GELU
	}
	p.plainFFN(Out, Norm, gelu)
	p.addX(Out)
}

// phi2 is the layer of Phi-1 and Phi-2: attention and FFN read the same row.
func phi2(p *program) {
	p.ln(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Out, Att, "attn_output")
	p.addX(Out)
	p.plainFFN(Out, Norm, GELU)
	p.addX(Out)
}

// falcon is the layer of Falcon: attention and FFN read the same row, but those of larger models read two norms of it.
func falcon(p *program) {
	p.ln(Norm, X, "attn_norm")
	row := Norm
	if p.hasWeight("attn_norm_2") {
		row = Out
		p.ln(row, X, "attn_norm_2")
	}
	p.qkv(row)
	p.rope()
	p.attend()
	p.linear(Out, Att, "attn_output")
	p.addX(Out)
	p.plainFFN(Out, Norm, GELUErf)
	p.addX(Out)
}

// cohere is the layer of Command R: attention and FFN read the same row. Some models normalise the heads of Q and K.
func cohere(p *program) {
	p.ln(Norm, X, "attn_norm")
	p.qkv(Norm)
	normHeadsApart(p)
	p.rope()
	p.attend()
	p.linear(Out, Att, "attn_output")
	p.addX(Out)
	p.ffn(Out, Norm, SwiGLU)
	p.addX(Out)
}

// stableLM is the layer of StableLM. Where it has no ffn_norm, attention and FFN read the same row. Some models normalise the heads of Q and K.
func stableLM(p *program) {
	p.ln(Norm, X, "attn_norm")
	p.qkv(Norm)
	normHeadsApart(p)
	p.rope()
	p.attend()
	p.linear(Out, Att, "attn_output")
	p.addX(Out)
	if p.hasWeight("ffn_norm") {
		p.ln(Norm, X, "ffn_norm")
	}
	p.ffn(Out, Norm, SwiGLU)
	p.addX(Out)
}

// olmo is the layer of OLMo: its layer norms have no weights, and some models bound Q, K and V.
func olmo(p *program) {
	p.ln(Norm, X, "")
	p.qkv(Norm)
	if c := p.h.ClampQKV; c > 0 {
		for _, v := range []Value{Q, K, V} {
			p.act(v, Clamp, -c, c)
		}
	}
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.ln(Norm, X, "")
	p.ffn(Norm, Norm, SwiGLU)
	p.addX(Norm)
}

// normHeadsApart adds layer norms of each head of Q and of K, which have weights for each head, if the file has them.
func normHeadsApart(p *program) {
	if s := p.shape(); p.hasWeight("attn_q_norm") {
		p.headLN(Q, "attn_q_norm", s.HeadCount, s.KeyLength)
		p.headLN(K, "attn_k_norm", s.HeadCountKV, s.KeyLength)
	}
}
