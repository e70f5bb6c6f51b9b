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
	positive, negative := bare(k, "xielu.alpha_p"), bare(k, "xielu.alpha_n")
	beta, eps := bare(k, "xielu.beta"), bare(k, "xielu.eps")
	for l := range h.Layers { // the file has the numbers that training changed, of which xIELU takes the softplus
		h.Layers[l].XIELU = [4]float32{float32(softplus(positive[l])), float32(beta[l] + softplus(negative[l])), float32(beta[l]), float32(eps[l])}
	}
}

// softplus is log(1 + eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// bare is [keys.floats] of a key that is required, and has no name of the architecture before it.
func bare(k *keys, key string) []float64 {
	k.read[key] = true
	v, found := k.md.Get(key)
	if !found {
		k.fail("key %q is missing", key)
	}
	return layerFloats(k, key, v)
}

// floats reads a float for each layer, ; zeros if the file does not have the key. Anything else is an error, and zeros.
func (k *keys) floats(name string) []float64 {
	key, v, _ := k.lookUp(name, nil)
	return layerFloats(k, key, v)
}

// layerFloats is a float for each layer: those of v, the value of a key, or v; zeros if v is nil. Anything else is an error, and zeros.
func layerFloats(k *keys, key string, v any) []float64 {
	all := make([]float64, k.layers)
	many, _ := k.md.Floats(key)
	switch {
	case v == nil:
		return all
	case kindOf(v) != "float":
		k.wrongType(key, v, "a float for each layer")
		return all
	case !k.perLayer(len(many)):
		k.fail("key %q: found %d values, wanted one for each of %d layers", key, len(many), k.layers)
		return all
	}
	for l := range all {
		if all[l] = float64(many[l]); !finite(all[l]) {
			k.fail("key %q: found %g, wanted a finite number", key, all[l])
		}
	}
	return all
}
