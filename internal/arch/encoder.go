package arch

// Pooling is how one vector, shape (D), is made of the hidden states of a text's tokens, shape (T, D).
type Pooling int

// The ways to pool.
const (
	PoolingUnset Pooling = iota // the file doesn't say
	PoolingNone                 // each token has a vector
	PoolingMean                 // the mean of all tokens
	PoolingFirst                // the first token, CLS of BERT
	PoolingLast                 // the last token
	PoolingRank                 // a classifier's score: leat has no classifiers
	poolings                    // number of ways
)

// readPooling sets Pooling. GGUF numbers the ways from 0, none, on.
func readPooling(k *keys, h *Hyper) {
	const name = "pooling_type"
	key, _, found := k.lookUp(name, nil)
	if !found {
		return
	}
	if h.Pooling = PoolingNone + Pooling(k.int(name, 0)); h.Pooling >= poolings {
		k.fail("key %q: found %d, wanted 0 to %d", key, h.Pooling-PoolingNone, poolings-PoolingNone-1)
	}
}

// readEncoder makes the model an encoder, whose rows see the whole text.
func readEncoder(k *keys, h *Hyper) {
	h.Encoder = true
	for _, name := range denseTensors { // binding.sizeDense checks them; these calls mark them as read
		k.int(name+"_feat_in", 0)
		k.int(name+"_feat_out", 0)
	}
	h.addMask(Mask{All: true}, k.everyLayer())
}

// readCentredWindow gives the layers that windowed marks a window of attention.sliding_window positions, half of them on each side of a row. They also get rope with
// frequencies of their own.
func readCentredWindow(k *keys, h *Hyper, windowed []bool) {
	if n := k.int("attention.sliding_window", 0); n > 0 {
		h.addMask(Mask{Around: max(1, n/2)}, windowed)
		readWindowedRope(k, h, windowed, windowedBase)
	}
}

// tokenTypes is the tensor with an embedding for each part of a text that BERT tells apart, such as question and answer. leat's texts have the first one only.
const tokenTypes = "token_types.weight"

// readBERT reads the keys of BERT.
func readBERT(k *keys, h *Hyper) {
	readNoRope(k, h)
	readEncoder(k, h)
	h.TokenTypes = 1
	if s := k.shape(tokenTypes); len(s) > 0 {
		h.TokenTypes = max(1, int(min(s[0], maxDim)))
	}
	const count = "tokenizer.ggml.token_type_count"
	if n, found := k.md.Int(count); found && n != int64(h.TokenTypes) {
		k.fail("tensor %q: found %d rows, wanted %d by the key %q", tokenTypes, h.TokenTypes, n, count)
	}
}

// bertInput adds to X, before the first layer of BERT, the embeddings of token type and position, then normalises it.
func bertInput(p *program) {
	p.add(Op{Kind: Bias, Dst: X, Weight: tokenTypes, Rows: p.h.TokenTypes})
	addPositions(p)
	normEmbeddings(p)
}

// bert is the layer of BERT: the residual stream itself is normalised, after each addition to it.
func bert(p *program) {
	p.qkv(X)
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.ln(X, X, "attn_output_norm")
	p.plainFFN(Norm, X, GELUErf)
	p.addX(Norm)
	p.ln(X, X, "layer_output_norm")
}

// lastStates copies X to Hidden: the last layer has normalised it already.
func lastStates(p *program) { p.add(Op{Kind: Scale, Dst: Hidden, A: X, Factor: 1}) }

// readModernBERT reads the keys of ModernBERT: two of three layers have a window, if there is one, and rope with frequencies of their own.
func readModernBERT(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	if k.err != nil {
		return
	}
	readEncoder(k, h)
	readCentredWindow(k, h, k.pattern("attention.sliding_window_pattern", 3, allButFirst))
	switch act := k.text("hidden_activation", "gelu"); act {
	case "gelu":
	case "silu", "swish", "swiglu":
		h.SiLU = true
	default:
		k.fail("key %q: found %q, wanted gelu or silu", h.Architecture+".hidden_activation", act)
	}
}

// modernBERT is the layer of ModernBERT: gate and up are one matrix. The first layer may have no attn_norm, because its input, the embeddings, is normalised already.
func modernBERT(p *program) {
	row := X
	if p.l > 0 || p.hasWeight("attn_norm") {
		row = Norm
		p.ln(row, X, "attn_norm")
	}
	p.qkv(row)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.ln(Norm, X, "ffn_norm")
	glu := GeGLUErf
	if p.h.SiLU {
		glu = SwiGLU
	}
	p.fusedFFN(Norm, Norm, glu)
	p.addX(Norm)
}

// readGemmaEmbedding reads the keys of EmbeddingGemma, a Gemma 3 whose rows see the whole text or, in five of six layers, a window around them.
func readGemmaEmbedding(k *keys, h *Hyper) {
	readGemma(k, h)
	if k.err != nil {
		return
	}
	readEncoder(k, h)
	readCentredWindow(k, h, k.pattern("attention.sliding_window_pattern", 6, allButLast))
}
