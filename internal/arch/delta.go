package arch

// DeltaNet is the hyperparameters of gated delta nets (Yang et al. 2024, arXiv:2412.06464). Of each Period layers, all but the last have a delta net, with a
// state instead of a KV cache. Heads is 0 if the model has no delta nets.
type DeltaNet struct {
	Heads           int  // Hn: value heads
	KeyHeads        int  // Hk: heads of queries, and of keys
	HeadLength      int  // Dn: values of a head
	Taps            int  // positions that the convolution before the net sees
	Period          int  // the last of each Period layers has attention, the others have delta nets
	Tiled           bool // head h uses key head h % KeyHeads; if not, h / (Heads/KeyHeads)
	JoinedBetaAlpha bool // one product makes betas and alphas: for each key head its betas, then its alphas
}

// Channels is the number of values of a row that the convolution reads: queries, keys, values.
func (d *DeltaNet) Channels() int { return (2*d.KeyHeads + d.Heads) * d.HeadLength }

// ConvBytes is the size of the first part of a layer's state: the convolution's last inputs (Taps-1, Channels), float32, rounded up to 256 bytes.
func (d *DeltaNet) ConvBytes() int64 {
	return (4*int64(d.Taps-1)*int64(d.Channels()) + 255) &^ 255
}

// HeadsBytes is the size of the second part of a layer's state: the heads' matrices (Hn, Dn, Dn), float32, rounded up to 256 bytes.
func (d *DeltaNet) HeadsBytes() int64 {
	return (4*int64(d.Heads)*int64(d.HeadLength)*int64(d.HeadLength) + 255) &^ 255
}

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
		if d.JoinedBetaAlpha {
			return 0
		}
		return d.Heads
	}
	return d.Heads * d.HeadLength
}

// The largest Taps and HeadLength that kernels take.
const (
	maxTaps  = 4   // of DeltaNet.Taps
	maxState = 256 // of DeltaNet.HeadLength
)

// deltaDefaults is the properties of an architecture's delta nets that files have no key for.
type deltaDefaults struct {
	tiled    bool // DeltaNet.Tiled
	together bool // DeltaNet.JoinedBetaAlpha
}

// readDeltaNet reads the keys of delta nets, and checks them against each other and against what kernels take. If the file is wrong, k keeps the error. f has
// the properties that files have no key for.
func readDeltaNet(k *keys, f deltaDefaults) DeltaNet {
	d := DeltaNet{
		Heads: k.int("ssm.time_step_rank", -1), KeyHeads: k.int("ssm.group_count", -1), HeadLength: k.int("ssm.state_size", -1), Taps: k.int("ssm.conv_kernel", -1),
		Period: k.int("full_attention_interval", 4), Tiled: f.tiled, JoinedBetaAlpha: f.together,
	}
	inner := k.int("ssm.inner_size", d.Heads*d.HeadLength)
	switch {
	case d.KeyHeads < 1 || d.Heads < 1 || d.Heads%d.KeyHeads != 0:
		k.fail("delta net: found %d heads of %d key heads, wanted a multiple", d.Heads, d.KeyHeads)
	case d.HeadLength < 4 || d.HeadLength%4 != 0 || d.HeadLength > maxState || inner != d.Heads*d.HeadLength:
		k.fail("delta net: found %d heads of %d values, %d in all; wanted heads of a multiple of 4, up to %d", d.Heads, d.HeadLength, inner, maxState)
	case d.Taps < 1 || d.Taps > maxTaps:
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".ssm.conv_kernel", d.Taps, maxTaps)
	case d.Period < 1:
		k.fail("key %q: found %d, wanted at least 1", k.arch+".full_attention_interval", d.Period)
	}
	return d
}

// Recurrent reports whether layer l has a state instead of a KV cache.
func (h *Hyper) Recurrent(l int) bool {
	return h.Delta.Heads > 0 && (h.modelLayer(l)+1)%h.Delta.Period != 0
}

// CacheLayer is the index of layer l in the KV cache: the number of layers before l that have a cache.
func (h *Hyper) CacheLayer(l int) int {
	switch {
	case h.Delta.Heads == 0:
		return l
	case h.likeLayer == nil:
		return l / h.Delta.Period
	}
	n := 0
	for i := range l {
		if !h.Recurrent(i) {
			n++
		}
	}
	return n
}

// StateLayer is the index of layer l in a sequence's state: the number of layers before l that have a state.
func (h *Hyper) StateLayer(l int) int { return l - h.CacheLayer(l) }

// StateBytes is the size of a sequence's state of all layers; 0: no layer has a state.
func (h *Hyper) StateBytes() int64 {
	if h.Delta.Heads == 0 {
		return 0
	}
	return int64(h.StateLayer(h.BlockCount)) * (h.Delta.ConvBytes() + h.Delta.HeadsBytes())
}

// deltaNet adds a gated delta net that reads Norm and adds its output to X.
func (p *program) deltaNet() {
	d := &p.h.Delta
	p.linear(DeltaIn, Norm, "attn_qkv")
	p.linear(DeltaGate, Norm, "attn_gate")
	if d.JoinedBetaAlpha {
		p.linear(Beta, Norm, "ssm_ba")
	} else {
		p.linear(Beta, Norm, "ssm_beta")
		p.linear(Alpha, Norm, "ssm_alpha")
	}
	p.add(Op{Kind: SSMConv, Dst: DeltaMixed, A: DeltaIn, Weight: p.prefix + "ssm_conv1d.weight"})
	p.add(Op{Kind: GatedDeltaNet, Dst: DeltaOut, A: DeltaMixed, B: Beta, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_dt.bias"})
	p.headNorm(DeltaOut, "ssm_norm", d.Heads, d.HeadLength)
	p.add(Op{Kind: SwiGLU, Dst: DeltaOut, A: DeltaGate, B: DeltaOut})
	p.linear(Norm, DeltaOut, "ssm_out")
	p.add(Op{Kind: Add, Dst: X, A: X, B: Norm})
}
