package arch

// Mixture is how a layer's FFN is made of experts; Count 0: it is dense.
type Mixture struct {
	Count, Used                   int     // E, K: experts of a layer, and of a token
	FeedForwardLength             int     // inner width of an expert
	Gating                        Gating  // what weighs an expert
	Normalise                     bool    // a token's weights come to 1
	Scale                         float32 // on the weights
	Groups, GroupsUsed, GroupBest int     // experts are chosen from the groups whose GroupBest best have the best scores; Groups 0: from all
	Biased                        bool    // each expert's products have biases
	Clamped                       bool    // SwiGLUOAI between them, not SwiGLU
	Dense                         int     // leading layers without experts
	SharedLength                  int     // Fs: inner width of the expert that every token uses; 0: there is none
}

// Gating is what an expert's weight is made of.
type Gating int

// The gatings, numbered as package shaders does.
const (
	SoftMax Gating = iota // softmax of all scores
	Sigmoid               // sigmoid of each
	Late                  // softmax of the scores of the chosen ones
)

// maxExperts is the most experts of a layer that the kernels hold.
const maxExperts = 1024

// gate is what an architecture says of its router where the file does not.
type gate struct {
	gating    Gating
	normalise bool
	clamped   bool
}

// readMixture takes what the metadata says of experts.
func readMixture(k *keys, g gate, feedForward int) Mixture {
	m := Mixture{
		Clamped: g.clamped,
		Count:   k.int("expert_count", 0), Used: k.int("expert_used_count", 0), FeedForwardLength: k.int("expert_feed_forward_length", feedForward),
		Gating: g.gating, Normalise: g.normalise, Scale: float32(k.atLeastZero("expert_weights_scale", 1)), Dense: k.int("leading_dense_block_count", 0),
	}
	if m.Scale == 0 { // none
		m.Scale = 1
	}
	m.Normalise = k.bool("expert_weights_norm", m.Normalise)
	if n := k.int("expert_gating_func", 0); n > 0 { // the key's numbers begin at 1
		m.Gating = Gating(n - 1)
	}
	m.SharedLength = k.int("expert_shared_feed_forward_length", k.int("expert_shared_count", 0)*m.FeedForwardLength)
	m.Groups, m.GroupsUsed = k.int("expert_group_count", 0), k.int("expert_group_used_count", 1)
	if m.Groups <= 1 {
		m.GroupsUsed = 0
	} else if m.GroupBest = 2; m.Gating == SoftMax {
		m.GroupBest = 1 // DeepSeek-V2; V3 takes the sum of two
	}
	if m.Count == 0 {
		return Mixture{}
	}
	switch {
	case m.Groups > 1 && (m.Count%m.Groups != 0 || m.GroupsUsed < 1 || m.GroupsUsed > m.Groups || m.GroupsUsed*(m.Count/m.Groups) < m.Used):
		k.fail("experts: found %d in %d groups, %d of them used, %d experts of a token; wanted groups of one size that hold as many", m.Count, m.Groups, m.GroupsUsed, m.Used)
	case m.Count > maxExperts:
		k.fail("key %q: found %d, wanted at most %d", k.arch+".expert_count", m.Count, maxExperts)
	case m.Used < 1 || m.Used > m.Count:
		k.fail("key %q: found %d, wanted 1 to the %d there are", k.arch+".expert_used_count", m.Used, m.Count)
	case m.Gating > Late:
		k.fail("key %q: found %d, wanted 1 (softmax), 2 (sigmoid) or 3 (softmax of the chosen)", k.arch+".expert_gating_func", m.Gating+1)
	case m.FeedForwardLength < 1:
		k.fail("key %q: found %d, wanted at least 1", k.arch+".expert_feed_forward_length", m.FeedForwardLength)
	}
	return m
}

// mixture is an FFN of experts: the router chooses some for each row, they run, and their outputs are added to dst by weight;
// before them, while they may be on their way, the one that every row uses.
func (p *program) mixture(dst, a Value) {
	p.linear(Scores, a, "ffn_gate_inp")
	route := Op{Kind: Route, Dst: Chosen, A: Scores}
	if bias := p.prefix + "exp_probs_b.bias"; p.has(bias) {
		route.Weight = bias
	}
	p.op(route)
	p.shared(dst, a)
	gate := []Op{p.each(ExpertGate, a, "ffn_gate_exps")}
	up := []Op{p.each(ExpertUp, a, "ffn_up_exps")}
	act := Op{Kind: SwiGLU, Dst: ExpertGate, A: ExpertGate, B: ExpertUp}
	if p.h.Experts.Clamped {
		act.Kind = SwiGLUOAI
	}
	if p.h.Experts.Biased {
		p.pairBiases(dst)
		gate = append(gate, Op{Kind: Add, Dst: ExpertGate, A: ExpertGate, B: GateBias})
		up = append(up, Op{Kind: Add, Dst: ExpertUp, A: ExpertUp, B: UpBias})
	}
	ops := append(append(gate, up...), act, p.each(ExpertOut, ExpertGate, "ffn_down_exps"))
	p.op(Op{Kind: Experts, Dst: ExpertOut, A: a, Ops: ops})
	p.op(Op{Kind: SumExperts, Dst: dst, A: ExpertOut, B: dst})
}

// shared is the expert that every row uses, added to dst. Where it has a gate, one for the row, this is on the inner values: the
// product behind them is linear.
func (p *program) shared(dst, a Value) {
	if p.h.Experts.SharedLength == 0 {
		return
	}
	gated := p.has(p.prefix + "ffn_gate_inp_shexp.weight")
	if gated {
		p.linear(SharedScore, a, "ffn_gate_inp_shexp")
	}
	p.linear(SharedGate, a, "ffn_gate_shexp")
	p.linear(SharedUp, a, "ffn_up_shexp")
	p.op(Op{Kind: SwiGLU, Dst: SharedGate, A: SharedGate, B: SharedUp})
	if gated {
		p.op(Op{Kind: SigmoidMul, Dst: SharedGate, A: SharedGate, B: SharedScore})
	}
	p.linear(SharedOut, SharedGate, "ffn_down_shexp")
	p.op(Op{Kind: Add, Dst: dst, A: dst, B: SharedOut})
}

// pairBiases gathers the biases of each pair's expert, for they lie in the layer, which may have left when its experts come. The last
// product's are added to dst by weight at once.
func (p *program) pairBiases(dst Value) {
	for _, b := range []struct {
		to    Value
		stack string
	}{{GateBias, "ffn_gate_exps"}, {UpBias, "ffn_up_exps"}, {ExpertOut, "ffn_down_exps"}} {
		p.op(Op{Kind: PairRows, Dst: b.to, A: Chosen, Weight: p.prefix + b.stack + ".bias"})
	}
	p.op(Op{Kind: SumExperts, Dst: dst, A: ExpertOut, B: dst})
}

// each is a product with the weights of each pair's own expert.
func (p *program) each(dst, a Value, stack string) Op {
	return Op{Kind: MulMatID, Dst: dst, A: a, Weight: p.prefix + stack + ".weight"}
}

// PerPair reports whether a row of v has a part for each of its experts, side by side.
func (v Value) PerPair() bool { return v >= ExpertGate && v <= UpBias }

// PairWidth is the number of values that a row of v holds for each expert, or at all where it isn't [Value.PerPair].
func (h *Hyper) PairWidth(v Value) int {
	if v.PerPair() {
		return h.Width(v) / max(1, h.Experts.Used)
	}
	return h.Width(v)
}

// mixtureWidth is Width of what only a mixture of experts has.
func (h *Hyper) mixtureWidth(v Value) int {
	m := &h.Experts
	switch v {
	case Scores:
		return m.Count
	case Chosen, Share, Pairs:
		return m.Used
	case ExpertGate, ExpertUp:
		return m.Used * m.FeedForwardLength
	case GateBias, UpBias:
		if m.Biased {
			return m.Used * m.FeedForwardLength
		}
		return 0
	case SharedGate, SharedUp:
		return m.SharedLength
	case SharedScore:
		return min(1, m.SharedLength)
	case SharedOut:
		return h.EmbeddingLength * min(1, m.SharedLength)
	}
	return m.Used * h.EmbeddingLength * min(1, m.Count)
}
