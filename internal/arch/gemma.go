package arch

import "math"

// gemma is the layer of Gemma.
func gemma(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.ffn(Norm, Norm, GeGLU)
	p.addX(Norm)
}

// gemma2 is the layer of Gemma 2: what is added to the residual stream is normalised too.
func gemma2(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.ffn(Norm, Norm, GeGLU)
	p.rms(Norm, Norm, "post_ffw_norm")
	p.addX(Norm)
}

// gemma3 is the layer of Gemma 3: as that of Gemma 2, but the heads of Q and K are normalised before rope.
func gemma3(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.normHeads()
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.ffn(Norm, Norm, GeGLU)
	p.rms(Norm, Norm, "post_ffw_norm")
	p.addX(Norm)
}

// readGemma reads the keys of Gemma: embeddings are multiplied by √D.
func readGemma(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	h.scaleEmbeddings()
}

// readGemma2 reads the keys of Gemma 2: every second layer has a window, and scores and logits are bounded.
func readGemma2(k *keys, h *Hyper) {
	readGemma(k, h)
	if k.err != nil {
		return
	}
	readWindow(k, h, 4096, k.pattern("attention.sliding_window_pattern", 2, allButLast))
	h.AttentionSoftCap = float32(k.atLeastZero("attn_logit_softcapping", 50))
	h.LogitSoftCap = float32(k.atLeastZero("final_logit_softcapping", 30))
	readGemmaScale(k, h, 46)
}

// readGemma3 reads the keys of Gemma 3: five of six layers have a window, if there is one, and rope with frequencies of their own, without scaling.
func readGemma3(k *keys, h *Hyper) {
	readGemma(k, h)
	if k.err != nil {
		return
	}
	windowed := k.pattern("attention.sliding_window_pattern", 6, allButLast)
	if readWindow(k, h, 0, windowed); len(h.Masks) > 1 {
		readWindowedRope(k, h, windowed, windowedBase)
	}
	h.LogitSoftCap = float32(k.atLeastZero("final_logit_softcapping", 0))
	readGemmaScale(k, h, 62)
}

// scaleEmbeddings sets EmbeddingScale to √D.
func (h *Hyper) scaleEmbeddings() {
	h.EmbeddingScale = float32(math.Sqrt(float64(h.EmbeddingLength)))
}

// readGemmaScale sets AttentionScale to the file's attention.scale. Without the key it stays 1/√Dk, except in the largest model, which has the given number of layers: there it
// is 1/√(D/H), which differs from 1/√Dk.
func readGemmaScale(k *keys, h *Hyper, largest int) {
	if s := float32(k.atLeastZero("attention.scale", 0)); s > 0 {
		h.AttentionScale = s
	} else if h.BlockCount == largest {
		h.AttentionScale = float32(1 / math.Sqrt(float64(h.EmbeddingLength/h.Layers[0].HeadCount)))
	}
}
