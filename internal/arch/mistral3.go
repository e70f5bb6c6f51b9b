package arch

import "math"

// readMistral3 reads the keys of Mistral 3: queries may grow with their position, and YaRN's attention temperature is divided by one of another slope.
func readMistral3(k *keys, h *Hyper) {
	withExperts(adjacent, routerDefaults{normalise: true})(k, h)
	log := k.atLeastZero("rope.scaling.yarn_log_multiplier", 0)
	scale := k.atLeastZero("attention.temperature_scale", 0)
	if k.err != nil {
		return
	}
	r := &h.Ropes[0]
	if r.ExtFactor != 0 {
		r.AttnFactor /= 1 + 0.1*log*math.Log(1/r.Scale)
	}
	if scale == 0 {
		return
	}
	if h.RowScale = (RowScale{Factor: scale, Length: r.OrigContext}); r.OrigContext < 1 {
		k.fail("key %q: found 0, wanted at least 1", k.arch+".rope.scaling.original_context_length")
	}
}

// mistral3 is the layer of Mistral 3.
func mistral3(p *program) {
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.turn()
	p.add(Op{Kind: KVAppend, A: K, B: V})
	if p.h.RowScale.Factor > 0 {
		p.add(Op{Kind: ScaleRows, Dst: Q, A: Q})
	}
	p.attendTo(Q, "")
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.feedForward("ffn_norm")
}
