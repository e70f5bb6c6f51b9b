package arch

// Mamba is the hyperparameters of selective state spaces: Mamba 1 (Gu and Dao 2023, arXiv:2312.00752) or Mamba 2 (Dao and Gu 2024, arXiv:2405.21060). Inner is 0 if
// the model has neither.
type Mamba struct {
	Inner    int     // Di: inner width
	State    int     // Ns: size of a state, for each value of the inner width
	Taps     int     // positions that the convolution before the scan sees
	Rank     int     // Rm of Mamba 1: size of what time steps are computed from
	Normed   bool    // of Mamba 1: what time steps are computed from, B and C are normalised even if the file has no weights for these norms
	Heads    int     // Hm of Mamba 2: each has one time step; 0: it is Mamba 1
	Groups   int     // G of Mamba 2: heads of a group share B and C
	DeltaMin float32 // least time step of Mamba 2
}

// Channels is the number of values of a row that the convolution reads: u of Mamba 1; x, B and C of Mamba 2.
func (m *Mamba) Channels() int {
	if m.Heads == 0 {
		return m.Inner
	}
	return m.Inner + 2*m.Groups*m.State
}

// width is [Hyper.Width] of the values from SSMGate to SSMOut.
func (m *Mamba) width(v Value) int {
	switch v {
	case SSMIn, SSMMixed:
		return m.Channels()
	case SSMDelta:
		if m.Heads > 0 {
			return m.Heads
		}
	case SSMLow:
		return m.Rank
	case SSMBC:
		return 2 * m.State
	}
	return m.Inner
}

// readMamba1 reads the keys of Mamba 1, and checks them against what kernels take. If the file is wrong, k keeps the error.
func readMamba1(k *keys, h *Hyper) {
	h.Mamba = Mamba{
		Inner: k.int("ssm.inner_size", -1), State: k.int("ssm.state_size", -1), Taps: k.int("ssm.conv_kernel", -1),
		Rank: k.int("ssm.time_step_rank", -1), Normed: k.bool("ssm.dt_b_c_rms", false),
	}
	if m := &h.Mamba; m.Rank < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+".ssm.time_step_rank", m.Rank)
	}
	k.checkMamba(&h.Mamba, maxScanState)
}

// readMamba2 reads the keys of Mamba 2, and checks them against each other and against what kernels take. If the file is wrong, k keeps the error.
func readMamba2(k *keys, h *Hyper) {
	h.Mamba = Mamba{
		Inner: k.int("ssm.inner_size", -1), State: k.int("ssm.state_size", -1), Taps: k.int("ssm.conv_kernel", -1),
		Heads: k.int("ssm.time_step_rank", -1), Groups: k.int("ssm.group_count", 1),
	}
	m := &h.Mamba
	if m.Heads < 1 || m.Groups < 1 || m.Inner%max(1, m.Heads) != 0 || m.Heads%max(1, m.Groups) != 0 {
		k.fail("keys %s.ssm.inner_size, time_step_rank and group_count: found %d values of %d heads in %d groups, wanted groups and heads of one size", k.arch, m.Inner, m.Heads, m.Groups)
	}
	k.checkMamba(m, maxState)
}

// checkMamba checks the sizes that Mamba 1 and 2 have against what kernels take. mostState is the largest State.
func (k *keys) checkMamba(m *Mamba, mostState int) {
	if m.Inner < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+".ssm.inner_size", m.Inner)
	}
	if m.State < 1 || m.State > mostState {
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".ssm.state_size", m.State, mostState)
	}
	if m.Taps < 1 || m.Taps > maxTaps {
		k.fail("key %q: found %d, wanted 1 to %d", k.arch+".ssm.conv_kernel", m.Taps, maxTaps)
	}
}

// readMambaOnly reads the keys of models of which every layer is Mamba 1.
func readMambaOnly(k *keys, h *Hyper) {
	readMamba1(k, h)
	h.stateInAll()
}

// readMamba2Only reads the keys of models of which every layer is Mamba 2.
func readMamba2Only(k *keys, h *Hyper) {
	readMamba2(k, h)
	h.stateInAll()
}

// stateInAll gives every layer a state.
func (h *Hyper) stateInAll() {
	for l := range h.Layers {
		h.Layers[l].State = true
	}
}

// mamba is the layer of Mamba 1.
func mamba(p *program) {
	p.rms(Norm, X, "attn_norm")
	mamba1Mixer(p, Norm, Norm)
	p.addX(Norm)
}

// mamba2 is the layer of Mamba 2.
func mamba2(p *program) {
	p.rms(Norm, X, "attn_norm")
	mamba2Mixer(p, Norm, Norm, true)
	p.addX(Norm)
}

// mamba1Mixer adds the mixer of Mamba 1, which reads a and writes dst.
func mamba1Mixer(p *program, dst, a Value) {
	m := &p.h.Mamba
	p.linearRows(SSMIn, a, "ssm_in", 0)
	p.linearRows(SSMGate, a, "ssm_in", m.Inner)
	stateConv(p)
	p.linearRows(SSMLow, SSMMixed, "ssm_x", 0)
	p.linearRows(SSMBC, SSMMixed, "ssm_x", m.Rank)
	normTimeSteps(p)
	p.add(Op{Kind: MulMat, Dst: SSMDelta, A: SSMLow, Weight: p.weight("ssm_dt")}) // the scan adds the bias
	p.add(Op{Kind: SelectiveScan, Dst: SSMOut, A: SSMMixed, B: SSMBC, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_d", Weight3: p.prefix + "ssm_dt.bias"})
	p.add(Op{Kind: SwiGLU, Dst: SSMOut, A: SSMGate, B: SSMOut})
	p.linear(dst, SSMOut, "ssm_out")
}

// normTimeSteps adds the RMS norms of SSMLow, of B and of C, if the file has weights for any of them, or if its keys say so.
func normTimeSteps(p *program) {
	const low, b, c = "ssm_dt_norm", "ssm_b_norm", "ssm_c_norm"
	n := p.h.Mamba.State
	weighted := p.hasWeight(low) || p.hasWeight(b) || p.hasWeight(c)
	if !weighted && !p.h.Mamba.Normed {
		return
	}
	for _, o := range []Op{{Dst: SSMLow, Weight: low, Cols: p.width(SSMLow)}, {Dst: SSMBC, Weight: b, Cols: n}, {Dst: SSMBC, Weight: c, Cols: n, Off: n}} {
		o.Kind, o.A, o.Heads, o.Weight = RMSNorm, o.Dst, 1, p.weight(o.Weight)
		if !weighted {
			o.Weight = ""
		}
		p.add(o)
	}
}

// mamba2Mixer adds the mixer of Mamba 2, which reads a and writes dst. normed says whether the groups of the scan's output are normalised, after the gate.
func mamba2Mixer(p *program, dst, a Value, normed bool) {
	m := &p.h.Mamba
	p.linearRows(SSMGate, a, "ssm_in", 0)
	p.linearRows(SSMIn, a, "ssm_in", m.Inner)
	p.linearRows(SSMDelta, a, "ssm_in", m.Inner+m.Channels())
	stateConv(p)
	p.add(Op{Kind: StateSpace, Dst: SSMOut, A: SSMMixed, B: SSMDelta, Weight: p.prefix + "ssm_a", Weight2: p.prefix + "ssm_d", Weight3: p.prefix + "ssm_dt.bias", DeltaMin: m.DeltaMin})
	p.add(Op{Kind: SwiGLU, Dst: SSMOut, A: SSMGate, B: SSMOut})
	if normed {
		p.add(Op{Kind: RMSNorm, Dst: SSMOut, A: SSMOut, Weight: p.weight("ssm_norm"), Heads: m.Groups, Cols: m.Inner / m.Groups, PerHead: m.Groups > 1})
	}
	p.linear(dst, SSMOut, "ssm_out")
}

// stateConv adds the convolution before a scan, with its bias if the file has one.
func stateConv(p *program) {
	p.add(Op{Kind: SSMConv, Dst: SSMMixed, A: SSMIn, Weight: p.weight("ssm_conv1d"), Weight2: optional(p, "ssm_conv1d.bias"), Cols: p.h.Mamba.Taps})
}
