package arch

import "math"

// arcee is the layer of AFM: llama's, with an FFN without a gate.
func arcee(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.plainFFN(Norm, Norm, ReLU2)
	p.addX(Norm)
}

// apertus is the layer of Apertus: the heads of Q and K are normalised before rope, and the FFN has no gate.
func apertus(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.normHeads()
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.plainFFN(Norm, Norm, XIELU, p.shape().XIELU[:]...)
	p.addX(Norm)
}

// readApertus reads the keys of Apertus.
func readApertus(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	h.AttentionScale = k.factor("attention.scale", h.AttentionScale)
	positive, negative := unprefixedFloats(k, "xielu.alpha_p"), unprefixedFloats(k, "xielu.alpha_n")
	beta, eps := unprefixedFloats(k, "xielu.beta"), unprefixedFloats(k, "xielu.eps")
	for l := range h.Layers { // the file has the numbers that training changed, of which xIELU takes the softplus
		h.Layers[l].XIELU = [4]float32{float32(softplus(positive[l])), float32(beta[l] + softplus(negative[l])), float32(beta[l]), float32(eps[l])}
	}
}

// softplus is log(1 + eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
