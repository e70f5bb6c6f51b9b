package arch

// kimiLinear is the layer of Kimi Linear: Kimi delta attention, or latent attention without rope.
func kimiLinear(p *program) {
	p.rms(Norm, X, "attn_norm")
	if p.shape().State {
		kimiDelta(p)
	} else {
		latentAttention(p)
	}
	p.feedForward("ffn_norm")
}

// kimiDelta adds Kimi delta attention (Kimi Team 2025, arXiv:2510.26692), which reads Norm and adds its output to X: a gated delta net whose states fade by a factor for each of their
// rows. Queries, keys and values have matrices and convolutions of their own; the factors and the gate of the output have matrices of low rank.
func kimiDelta(p *program) {
	d := &p.h.Delta
	for _, part := range []struct {
		v    Value
		name string
	}{{DeltaQ, "q"}, {DeltaK, "k"}, {DeltaV, "v"}} {
		p.linear(part.v, Norm, "attn_"+part.name)
	}
	p.linear(DeltaLow, Norm, "ssm_f_a")
	p.linear(Alpha, DeltaLow, "ssm_f_b")
	p.linear(DeltaLow, Norm, "ssm_g_a")
	p.linear(DeltaGate, DeltaLow, "ssm_g_b")
	p.linear(Beta, Norm, "ssm_beta")
	for i, part := range []struct {
		v    Value
		name string
	}{{DeltaQ, "q"}, {DeltaK, "k"}, {DeltaV, "v"}} {
		p.add(Op{Kind: SSMConv, Dst: DeltaMixed, A: part.v, Weight: p.weight("ssm_conv1d_" + part.name), Cols: d.Taps, Off: i * p.width(part.v)})
	}
	p.add(Op{Kind: GatedDeltaNet, Dst: DeltaOut, A: DeltaMixed, B: Beta, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_dt.bias"})
	p.headRMS(DeltaOut, "ssm_norm", d.Heads, d.HeadLength)
	p.add(Op{Kind: SigmoidMul, Dst: DeltaOut, A: DeltaOut, B: DeltaGate})
	p.linear(Norm, DeltaOut, "attn_output")
	p.addX(Norm)
}

// readKimiLinear reads the keys of Kimi Linear. Layers with a head_count_kv of 0 have Kimi delta attention, with as many heads as latent attention.
func readKimiLinear(k *keys, h *Hyper) {
	heads, kv := k.atLeastOne("attention.head_count"), k.ints("attention.head_count_kv", nil)
	rank, ropeDim := k.atLeastOne("attention.kv_lora_rank"), k.atLeastOne("rope.dimension_count")
	d := DeltaNet{Heads: heads, KeyHeads: heads, HeadLength: k.atLeastOne("kda.head_dim"), Taps: k.atLeastOne("ssm.conv_kernel"), ByChannel: true}
	length := k.int("attention.key_length", rank+ropeDim)
	k.int("attention.value_length", 0) // read and not used: the converter writes a size that no head has
	checkDeltaNet(k, &d)
	for l := range h.Layers {
		s := &h.Layers[l]
		if s.State = kv[l] == 0; !s.State {
			s.HeadCount, s.HeadCountKV, s.KeyLength, s.ValueLength, s.Cache = heads, kv[l], length, rank, true
			k.checkHeads(s)
		}
	}
	if k.err != nil {
		return
	}
	h.Delta = d
	readMixture(k, h, mixtureDefaults{gating: Sigmoid, normalise: true})
	readLatent(k, h)
}
