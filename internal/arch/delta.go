package arch

// DeltaNet is the hyperparameters of gated delta nets (Yang et al. 2024, arXiv:2412.06464). A layer with a delta net has a state instead of a KV
// cache. Heads is 0 if the model has no delta nets.
type DeltaNet struct {
	Heads           int  // Hn: value heads
	KeyHeads        int  // Hk: heads of queries, and of keys
	HeadLength      int  // Dn: values of a head
	Taps            int  // positions that the convolution before the net sees
	Tiled           bool // head h uses key head h % KeyHeads; if not, h / (Heads/KeyHeads)
	ByChannel       bool // the rows of a head's state fade by factors of their own, which Alpha has one of each; and queries, keys and values have convolutions of their own
	JoinedBetaAlpha bool // one product makes betas and alphas: for each key head its betas, then its alphas
}

// Channels is the number of values of a row that the convolution reads: queries, keys, values.
func (d *DeltaNet) Channels() int { return (2*d.KeyHeads + d.Heads) * d.HeadLength }

// width is [Hyper.Width] of a value from DeltaIn on, which only delta nets have.
func (d *DeltaNet) width(v Value) int {
	switch v {
	case DeltaIn, DeltaMixed:
		return d.Channels()
	case Beta:
		if d.JoinedBetaAlpha {
			return 2 * d.Heads
		}
		return d.Heads
	case Alpha:
		switch {
		case d.JoinedBetaAlpha:
			return 0
		case !d.ByChannel:
			return d.Heads
		}
	case DeltaLow:
		return d.HeadLength
	}
	return d.Heads * d.HeadLength
}

// The longest convolution and the largest states that kernels take.
const (
	maxTaps      = 4   // of DeltaNet.Taps, Mamba.Taps and Hyper.ShortConvTaps
	maxState     = 256 // of DeltaNet.HeadLength, and of Mamba.State of Mamba 2
	maxScanState = 64  // of Mamba.State of Mamba 1
)

// deltaTraits holds properties of an architecture's delta nets that files have no key for.
type deltaTraits struct {
	tiled  bool // DeltaNet.Tiled
	joined bool // DeltaNet.JoinedBetaAlpha
}

// readDeltaNet reads the keys of delta nets, and checks them against each other and against what kernels take. The last of each full_attention_interval layers
// keeps its cache; the others have a delta net. If the file is wrong, k keeps the error.
func readDeltaNet(k *keys, h *Hyper, fixed deltaTraits) {
	d := DeltaNet{
		Heads: k.int("ssm.time_step_rank", -1), KeyHeads: k.int("ssm.group_count", -1), HeadLength: k.int("ssm.state_size", -1), Taps: k.int("ssm.conv_kernel", -1),
		Tiled: fixed.tiled, JoinedBetaAlpha: fixed.joined,
	}
	inner, period := k.int("ssm.inner_size", d.Heads*d.HeadLength), k.int("full_attention_interval", 4)
	checkDeltaNet(k, &d)
	if inner != d.Heads*d.HeadLength {
		k.fail("keys %s.ssm.state_size and inner_size: found %d heads of delta nets of %d values, %d in all", k.arch, d.Heads, d.HeadLength, inner)
	}
	if period < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+".full_attention_interval", period)
	}
	if k.err != nil {
		return
	}
	h.Delta = d
	for l := range h.Layers {
		if allButLast(l, period) {
			h.Layers[l].Cache, h.Layers[l].State, h.Layers[l].Rope = false, true, NoRope
		}
	}
}

// checkDeltaNet checks the sizes of delta nets against each other and against what kernels take.
func checkDeltaNet(k *keys, d *DeltaNet) {
	switch {
	case d.KeyHeads < 1 || d.Heads < 1 || d.Heads%d.KeyHeads != 0:
		k.fail("keys %s.ssm.time_step_rank and group_count: found %d heads of %d key heads of delta nets, wanted a multiple", k.arch, d.Heads, d.KeyHeads)
	case d.HeadLength < 4 || d.HeadLength%4 != 0 || d.HeadLength > maxState:
		k.fail("key %s.ssm.state_size: found heads of %d values, wanted a multiple of 4, up to %d", k.arch, d.HeadLength, maxState)
	case d.Taps < 1 || d.Taps > maxTaps:
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".ssm.conv_kernel", d.Taps, maxTaps)
	}
}

// readQwen35 reads the keys of dense Qwen3.5 models.
func readQwen35(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	readDeltaNet(k, h, deltaTraits{tiled: true})
}

// readQwen35MoE reads the keys of Qwen3.5 models with experts.
func readQwen35MoE(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{normalise: true})(k, h)
	readDeltaNet(k, h, deltaTraits{tiled: true})
}

// readQwen3Next reads the keys of Qwen3-Next.
func readQwen3Next(k *keys, h *Hyper) {
	withExperts(halves, mixtureDefaults{normalise: true})(k, h)
	readDeltaNet(k, h, deltaTraits{joined: true})
}

// qwen3next is the layer of Qwen3-Next and Qwen3.5: a gated delta net, or attention whose output has a gate.
func qwen3next(p *program) {
	p.rms(Norm, X, "attn_norm")
	if p.shape().State {
		deltaNet(p)
	} else {
		gatedAttention(p)
	}
	p.feedForward("post_attention_norm")
}

// gatedAttention adds attention that reads Norm, and adds its output to X. One matrix makes for each head its query, then a gate of its output.
func gatedAttention(p *program) {
	s := p.shape()
	p.linear(QueryGate, Norm, "attn_q")
	p.linear(K, Norm, "attn_k")
	p.linear(V, Norm, "attn_v")
	p.add(Op{Kind: RMSNorm, Dst: Q, A: QueryGate, Weight: p.weight("attn_q_norm"), Heads: s.HeadCount, Cols: s.KeyLength})
	p.headRMS(K, "attn_k_norm", s.HeadCountKV, s.KeyLength)
	p.rope()
	p.attend()
	p.add(Op{Kind: SigmoidMul, Dst: Att, A: Att, B: QueryGate, Heads: s.HeadCount, Off: s.KeyLength})
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
}

// deltaNet adds a gated delta net that reads Norm and adds its output to X.
func deltaNet(p *program) {
	d := &p.h.Delta
	p.linear(DeltaIn, Norm, "attn_qkv")
	p.linear(DeltaGate, Norm, "attn_gate")
	if d.JoinedBetaAlpha {
		p.linear(Beta, Norm, "ssm_ba")
	} else {
		p.linear(Beta, Norm, "ssm_beta")
		p.linear(Alpha, Norm, "ssm_alpha")
	}
	p.add(Op{Kind: SSMConv, Dst: DeltaMixed, A: DeltaIn, Weight: p.weight("ssm_conv1d"), Cols: d.Taps})
	p.add(Op{Kind: GatedDeltaNet, Dst: DeltaOut, A: DeltaMixed, B: Beta, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_dt.bias"})
	p.headRMS(DeltaOut, "ssm_norm", d.Heads, d.HeadLength)
	p.add(Op{Kind: SwiGLU, Dst: DeltaOut, A: DeltaGate, B: DeltaOut})
	p.linear(Norm, DeltaOut, "ssm_out")
	p.addX(Norm)
}
