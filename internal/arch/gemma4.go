package arch

import "fmt"

import "math"

// gemma4 is the layer of Gemma 4: as that of Gemma 3, but values are normalised too, FFN and experts may stand side by side, the layer may add an input of its
// own, and the residual stream is multiplied by a factor at the end.
func gemma4(p *program) {
	p.rms(Norm, X, "attn_norm")
	gemma4Heads(p)
	p.rope()
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.rms(Norm, Norm, "post_attention_norm")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	p.ffn(Out, Norm, GeGLU)
	if p.shape().Experts {
		p.rms(Out, Out, "post_ffw_norm_1")
		gemma4Experts(p)
	}
	p.rms(Out, Out, "post_ffw_norm")
	p.addX(Out)
	if p.h.LayerInput.Length > 0 {
		ownInput(p, Norm, X)
		p.addX(Norm)
	}
	p.add(Op{Kind: MulWeight, Dst: X, A: X, Weight: p.weight("layer_output_scale"), Cols: 1})
}

// gemma4Heads adds the products of Norm that make Q, K and V, and the norms of their heads; in a layer that borrows keys and values only those of Q. A layer that sees all positions may have no matrix for values: its
// values are its keys before their norm.
func gemma4Heads(p *program) {
	s := p.shape()
	if s.Borrows {
		p.linear(Q, Norm, "attn_q")
		p.headRMS(Q, "attn_q_norm", s.HeadCount, s.KeyLength)
		return
	}
	if !p.h.Windowed(p.l) && p.hasWeight("attn_k") && !p.hasWeight("attn_v") {
		p.linear(Q, Norm, "attn_q")
		p.linear(K, Norm, "attn_k")
		p.add(Op{Kind: HeadCopy, Dst: V, A: K, Heads: s.HeadCountKV, Cols: s.KeyLength})
	} else {
		p.qkv(Norm)
	}
	p.headRMS(V, "", s.HeadCountKV, s.ValueLength)
	p.normHeads()
}

// gemma4Experts adds the experts of X, which read other norms of it than the FFN, and adds their output, normalised, to Out.
func gemma4Experts(p *program) {
	width := p.width(X)
	p.add(Op{Kind: RMSNorm, Dst: Norm, A: X, Weight: p.prefix + "ffn_gate_inp.scale", Heads: 1, Cols: width, Factor: float32(1 / math.Sqrt(float64(width)))})
	choice := addRouter(p, Norm)
	choice.Weight2 = p.prefix + "ffn_down_exps.scale"
	p.add(choice)
	p.rms(Norm, X, "pre_ffw_norm_2")
	chosenExperts(p, Norm, GeGLU)
	p.add(Op{Kind: SumExperts, Dst: FFNOut, A: ExpertOut})
	p.rms(FFNOut, FFNOut, "post_ffw_norm_2")
	p.add(Op{Kind: Add, Dst: Out, A: Out, B: FFNOut})
}

// readGemma4 reads the keys of Gemma 4: layers with a window have heads of another size, and rope with frequencies of their own. Rope of the other layers has the
// file's factors. Scores have no factor.
func readGemma4(k *keys, h *Hyper) {
	readAttention(k, h)
	readMixture(k, h, mixtureDefaults{normalise: true})
	if k.err != nil {
		return
	}
	windowed := k.pattern("attention.sliding_window_pattern", 6, allButLast)
	readWindow(k, h, -1, windowed)
	readGemma4Heads(k, h, windowed)
	readLayerInput(k, h)
	shared := k.int("attention.shared_kv_layers", 0)
	borrowCaches(k, h, shared)
	for l := range h.Layers {
		name := fmt.Sprintf("blk.%d.attn_k.weight", l)
		if h.Layers[l].Cache && k.shape(name) == nil && k.shape(fmt.Sprintf("blk.%d.attn_q.weight", l)) != nil {
			k.fail("tensor %q is missing; by the key %q the last %d layers do without", name, k.arch+".attention.shared_kv_layers", shared)
		}
	}
	h.AttentionScale = 1
	h.LogitSoftCap = float32(k.atLeastZero("final_logit_softcapping", 0))
	h.scaleEmbeddings()
}

// readGemma4Heads reads the sizes of heads of the layers that windowed marks, and the ropes of all layers, and checks them.
func readGemma4Heads(k *keys, h *Hyper, windowed []bool) {
	all := h.Layers[0] // so far, all layers have the sizes of those without a window
	key := k.int("attention.key_length_swa", all.KeyLength)
	value := k.int("attention.value_length_swa", all.ValueLength)
	h.Ropes = []Rope{readRope(k, all.KeyLength, h.ContextLength, halves)}
	for l := range h.Layers {
		s := &h.Layers[l]
		s.Rope = 0
		if windowed[l] {
			s.KeyLength, s.ValueLength = key, value
		}
		if k.checkHeads(s); s.KeyLength != s.ValueLength {
			k.fail("keys %s.attention.key_length_swa and value_length_swa, or key_length and value_length: layer %d: found keys of %d values and values of %d, wanted one size", k.arch, l, s.KeyLength, s.ValueLength)
		}
	}
	if readWindowedRope(k, h, windowed, windowedBase); k.err != nil {
		return
	}
	const dim = "rope.dimension_count_swa"
	h.Ropes[1].Dim = k.int(dim, key)
	k.checkRopeDim(dim, h.Ropes[1].Dim, key)
}
