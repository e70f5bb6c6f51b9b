package arch

// DeltaNet is how layers without a cache work: a gated delta net (Yang et al. 2024, arXiv:2412.06464) in all but the last of each
// period of layers; Heads 0: there are none.
type DeltaNet struct {
	Heads    int  // Hn
	KeyHeads int  // of queries, and of keys
	Head     int  // Dn: values of a head
	Taps     int  // of the convolution in front
	Period   int  // of so many layers the last one has attention
	Tiled    bool // head h takes key head h % KeyHeads, not h / (Heads/KeyHeads)
	Together bool // one product makes betas and alphas, those of a key head side by side
}

// Channels is how many values of a row the convolution takes: queries, keys, values.
func (d *DeltaNet) Channels() int { return (2*d.KeyHeads + d.Heads) * d.Head }

// ConvBytes is the first part of a layer's state: the convolution's last inputs (Taps-1, Channels), float32, in a multiple of 256 bytes.
func (d *DeltaNet) ConvBytes() int64 {
	return (4*int64(d.Taps-1)*int64(d.Channels()) + 255) &^ 255
}

// NetBytes is the second part of a layer's state: the heads' matrices (Hn, Dn, Dn), float32, in a multiple of 256 bytes.
func (d *DeltaNet) NetBytes() int64 {
	return (4*int64(d.Heads)*int64(d.Head)*int64(d.Head) + 255) &^ 255
}

// width is [Hyper.Width] of a value that only delta nets have.
func (d *DeltaNet) width(v Value) int {
	switch v {
	case NetIn, NetMixed:
		return d.Channels()
	case Beta:
		if d.Together {
			return 2 * d.Heads
		}
		return d.Heads
	case Alpha:
		if d.Together {
			return 0
		}
		return d.Heads
	}
	return d.Heads * d.Head
}

// The kernels' limits.
const (
	maxTaps  = 4
	maxState = 256
)

// netFamily is what an architecture says of its delta nets where the file does not.
type netFamily struct{ tiled, together bool }

func readDeltaNet(k *keys, f netFamily) DeltaNet {
	d := DeltaNet{
		Heads: k.int("ssm.time_step_rank", -1), KeyHeads: k.int("ssm.group_count", -1), Head: k.int("ssm.state_size", -1), Taps: k.int("ssm.conv_kernel", -1),
		Period: k.int("full_attention_interval", 4), Tiled: f.tiled, Together: f.together,
	}
	inner := k.int("ssm.inner_size", d.Heads*d.Head)
	switch {
	case d.KeyHeads < 1 || d.Heads < 1 || d.Heads%d.KeyHeads != 0:
		k.fail("delta net: found %d heads of %d key heads, wanted a multiple", d.Heads, d.KeyHeads)
	case d.Head < 4 || d.Head%4 != 0 || d.Head > maxState || inner != d.Heads*d.Head:
		k.fail("delta net: found %d heads of %d values, %d in all; wanted heads of a multiple of 4, up to %d", d.Heads, d.Head, inner, maxState)
	case d.Taps < 1 || d.Taps > maxTaps:
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".ssm.conv_kernel", d.Taps, maxTaps)
	case d.Period < 1:
		k.fail("key %q: found %d, wanted at least 1", k.arch+".full_attention_interval", d.Period)
	}
	return d
}

// Recurrent reports whether layer l has a state in place of a cache.
func (h *Hyper) Recurrent(l int) bool { return h.Net.Heads > 0 && (h.number(l)+1)%h.Net.Period != 0 }

// CacheLayer numbers the layers that have a cache: it is how many there are before l.
func (h *Hyper) CacheLayer(l int) int {
	switch {
	case h.Net.Heads == 0:
		return l
	case h.as == nil:
		return l / h.Net.Period
	}
	n := 0
	for i := range l {
		if !h.Recurrent(i) {
			n++
		}
	}
	return n
}

// StateLayer numbers the layers that have a state.
func (h *Hyper) StateLayer(l int) int { return l - h.CacheLayer(l) }

// StateBytes is the state of all layers; 0: there is none.
func (h *Hyper) StateBytes() int64 {
	if h.Net.Heads == 0 {
		return 0
	}
	return int64(h.StateLayer(h.BlockCount)) * (h.Net.ConvBytes() + h.Net.NetBytes())
}

// deltaNet adds a gated delta net of Norm to X.
func (p *program) deltaNet() {
	d := &p.h.Net
	p.linear(NetIn, Norm, "attn_qkv")
	p.linear(NetGate, Norm, "attn_gate")
	if d.Together {
		p.linear(Beta, Norm, "ssm_ba")
	} else {
		p.linear(Beta, Norm, "ssm_beta")
		p.linear(Alpha, Norm, "ssm_alpha")
	}
	p.op(Op{Kind: SSMConv, Dst: NetMixed, A: NetIn, Weight: p.prefix + "ssm_conv1d.weight"})
	p.op(Op{Kind: GatedDeltaNet, Dst: NetOut, A: NetMixed, B: Beta, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_dt.bias"})
	p.headNorm(NetOut, "ssm_norm", d.Heads, d.Head)
	p.op(Op{Kind: SwiGLU, Dst: NetOut, A: NetGate, B: NetOut})
	p.linear(Norm, NetOut, "ssm_out")
	p.op(Op{Kind: Add, Dst: X, A: X, B: Norm})
}
