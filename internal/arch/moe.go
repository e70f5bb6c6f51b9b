package arch

import "slices"

// Mixture is the hyperparameters of a mixture of experts, which layers may have instead of an FFN; Count 0: the model has none.
type Mixture struct {
	Count             int     // E: experts of a layer
	Used              int     // K: experts that a token uses of a layer
	FeedForwardLength int     // Fe: inner width of an expert
	Gating            Gating  // how scores become the weights of experts
	Normalise         bool    // a token's weights are divided by their sum
	Scale             float32 // factor of the weights
	Groups            int     // groups of equal size that a layer's experts are divided into; 0 or 1: all are one group
	GroupsUsed        int     // groups that a token's experts are chosen from: those with the best scores; 0 if there is one group
	GroupBest         int     // a group's score is the sum of the scores of its GroupBest best experts; 0 if there is one group
	Biased            bool    // each expert's products have biases
	Clamped           bool    // experts have SwiGLUOAI instead of SwiGLU
	SharedLength      int     // Fs: inner width of the shared expert, which every token uses; 0: there is none
	LatentLength      int     // Z: size of the latent of a row that experts read instead of the row, and of their output; 0: they read the row
}

// Gating is how a router's scores become the weights of experts.
type Gating int

// The gatings, numbered as in package shaders.
const (
	SoftMax       Gating = iota // softmax of the scores of all experts
	Sigmoid                     // sigmoid of each expert's score
	SoftMaxChosen               // softmax of the scores of the chosen experts
	SparseMixer                 // for each chosen expert, softmax over the experts that have scores near its own and were not chosen before it (Liu et al. 2024, arXiv:2409.12136)
)

// maxExperts is the most experts of a layer that kernels take.
const maxExperts = 1024

// mixtureDefaults holds properties of an architecture's mixture that apply where the file has no key for them.
type mixtureDefaults struct {
	gating    Gating // Mixture.Gating: how scores become weights
	normalise bool   // Mixture.Normalise: a token's weights are divided by their sum
	clamped   bool   // Mixture.Clamped: experts have SwiGLUOAI, whose inputs are clamped, instead of SwiGLU. No file has a key for it.
}

// readMixture reads the keys of a mixture and the widths of FFNs, and checks them against each other and against what kernels take; if the file is wrong, k keeps
// the error. Layers from leading_dense_block_count on have experts. d is used where the file has no key. A file without experts gets the zero Mixture.
func readMixture(k *keys, h *Hyper, d mixtureDefaults) {
	var fallback []int                                      // of feed_forward_length
	if n := k.int("expert_feed_forward_length", 0); n > 0 { // a file whose layers all have experts may lack feed_forward_length
		fallback = slices.Repeat([]int{n}, k.layers)
	}
	k.setFeedForward(h, k.ints("feed_forward_length", fallback))
	if k.err != nil {
		return
	}
	h.Experts = readExperts(k, d, h.Layers[0].FeedForwardLength)
	for l, first := 0, k.int("leading_dense_block_count", 0); l < len(h.Layers); l++ {
		h.Layers[l].Experts = h.Experts.Count > 0 && l >= first
	}
}

// readMixtureByRouters is [readMixture] for architectures in which the layers with a router, ffn_gate_inp, have experts. The widths of FFNs must be set before. A file may
// count experts and have no router: then its keys of experts mean nothing.
func readMixtureByRouters(k *keys, h *Hyper, d mixtureDefaults) {
	k.int("expert_count", 0) // read even if no layer has a router: readHyper refuses a model whose expert_count its architecture did not read
	for l := range h.Layers {
		h.Layers[l].Experts = k.rows(l, "ffn_gate_inp") > 0
	}
	l := firstExperts(h)
	if l < 0 || k.err != nil {
		return
	}
	if h.Experts = readExperts(k, d, h.Layers[l].FeedForwardLength); h.Experts.Count == 0 {
		k.fail("key %q: found 0, wanted the number of experts that the routers choose from", k.arch+".expert_count")
	}
}

// readExperts reads the keys of experts, and checks them for [readMixture] and [readMixtureByRouters]. d and feedForward, the inner width of an expert, are used where the
// file has no key. The result is the zero Mixture if the file counts no experts.
func readExperts(k *keys, d mixtureDefaults, feedForward int) Mixture {
	m := Mixture{
		Clamped: d.clamped,
		Count:   k.int("expert_count", 0), Used: k.int("expert_used_count", 0), FeedForwardLength: k.int("expert_feed_forward_length", feedForward),
		Gating: d.gating, Normalise: d.normalise, Scale: float32(k.atLeastZero("expert_weights_scale", 1)),
	}
	if m.Scale == 0 { // not used
		m.Scale = 1
	}
	m.Normalise = k.bool("expert_weights_norm", m.Normalise)
	gating := k.int("expert_gating_func", 0)
	if gating > 0 { // the key's numbers begin at 1
		m.Gating = Gating(gating - 1)
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
	case gating > int(SoftMaxChosen)+1:
		k.fail("key %q: found %d, wanted 1 (softmax), 2 (sigmoid) or 3 (softmax of the chosen)", k.arch+".expert_gating_func", gating)
	case m.FeedForwardLength < 1:
		k.fail("key %q: found %d, wanted at least 1", k.arch+".expert_feed_forward_length", m.FeedForwardLength)
	}
	return m
}

// mixture adds a mixture of experts that reads a: dst = base + the mixture's output; base None: 0. The router chooses experts for each row, and the output is the sum of
// the experts' outputs by weight. The shared expert comes first, because the chosen ones may still have to be uploaded.
func (p *program) mixture(dst, base, a Value) {
	p.add(addScaledRouter(p, a))
	if p.h.Experts.SharedLength > 0 {
		sharedExpert(p, dst, base, a)
		base = dst
	}
	if p.h.Experts.Biased {
		pairBiases(p, dst, base)
		base = dst
	}
	glu := SwiGLU
	if p.h.Experts.Clamped {
		glu = SwiGLUOAI
	}
	chosenExperts(p, a, glu)
	p.add(Op{Kind: SumExperts, Dst: dst, A: ExpertOut, B: base})
}

// addRouter adds the product of a that makes the router's scores. It does not add the Route that chooses experts by them, but returns it: the caller may set Weight2.
func addRouter(p *program, a Value) Op {
	p.linear(Scores, a, "ffn_gate_inp")
	return Op{Kind: Route, Dst: Chosen, A: Scores, Weight: optional(p, "exp_probs_b.bias")}
}

// chosenExperts adds the chosen experts, which read a. Their gate is glu, one of SwiGLU, GeGLU and SwiGLUOAI.
func chosenExperts(p *program, a Value, glu Kind) {
	gate, up := scaledExpert(p, ExpertGate, a, "ffn_gate_exps", GateScale), scaledExpert(p, ExpertUp, a, "ffn_up_exps", UpScale)
	if p.hasWeight("ffn_gate_up_exps") { // both are in one tensor
		gate[0].Weight, up[0].Weight, up[0].Row = p.weight("ffn_gate_up_exps"), p.weight("ffn_gate_up_exps"), p.h.Experts.FeedForwardLength
	}
	if p.h.Experts.Biased {
		gate = append(gate, Op{Kind: Add, Dst: ExpertGate, A: ExpertGate, B: GateBias})
		up = append(up, Op{Kind: Add, Dst: ExpertUp, A: ExpertUp, B: UpBias})
	}
	ops := append(append(gate, up...), clampGLU(ExpertGate, ExpertUp, p.shape().Bounds.Experts)...)
	ops = append(ops, Op{Kind: glu, Dst: ExpertGate, A: ExpertGate, B: ExpertUp}, perExpert(p, ExpertOut, ExpertGate, "ffn_down_exps"))
	p.add(Op{Kind: Experts, Dst: ExpertOut, A: a, Ops: ops})
}

// sharedExpert adds the shared expert, which reads a: dst = base + the expert's output; base None: 0. A gate, one value for a row, multiplies the expert's inner values
// instead of its output: the result is the same, because the last product is linear.
func sharedExpert(p *program, dst, base, a Value) {
	gated := p.hasWeight("ffn_gate_inp_shexp")
	if gated {
		p.linear(SharedScore, a, "ffn_gate_inp_shexp")
	}
	p.linear(SharedGate, a, "ffn_gate_shexp")
	p.linear(SharedUp, a, "ffn_up_shexp")
	p.add(clampGLU(SharedGate, SharedUp, p.shape().Bounds.FFN)...)
	p.add(Op{Kind: SwiGLU, Dst: SharedGate, A: SharedGate, B: SharedUp})
	if gated {
		p.add(Op{Kind: SigmoidMul, Dst: SharedGate, A: SharedGate, B: SharedScore})
	}
	if base == None {
		p.linear(dst, SharedGate, "ffn_down_shexp")
		return
	}
	p.linear(SharedOut, SharedGate, "ffn_down_shexp")
	p.add(Op{Kind: Add, Dst: dst, A: base, B: SharedOut})
}

// pairBiases gathers the biases of each pair's expert before the experts run: biases are in the layer's unit, which may leave VRAM before the experts arrive. dst = base
// + the sum of the chosen experts' output biases by weight; base None: 0.
func pairBiases(p *program, dst, base Value) {
	for _, b := range []struct {
		to    Value
		stack string
	}{{GateBias, "ffn_gate_exps"}, {UpBias, "ffn_up_exps"}, {ExpertOut, "ffn_down_exps"}} {
		p.add(Op{Kind: PairRows, Dst: b.to, A: Chosen, Weight: p.prefix + b.stack + ".bias"})
	}
	p.add(Op{Kind: SumExperts, Dst: dst, A: ExpertOut, B: base})
}

// plainExperts adds a mixture of experts without gates, which reads a, and adds its output to X: each expert is like [program.plainFFN] with the activation f. If the experts
// read latents, ffn_latent_down makes the latent of a, and ffn_latent_up turns the sum of the experts' outputs into the output.
func plainExperts(p *program, a Value, f Activation) {
	p.add(addScaledRouter(p, a))
	if p.h.Experts.SharedLength > 0 {
		p.linear(SharedUp, a, "ffn_up_shexp")
		p.act(SharedUp, f)
		p.linear(SharedOut, SharedUp, "ffn_down_shexp")
		p.addX(SharedOut)
	}
	latent := p.h.Experts.LatentLength > 0
	if latent {
		p.linear(ExpertLatent, a, "ffn_latent_down")
		a = ExpertLatent
	}
	ops := append(scaledExpert(p, ExpertUp, a, "ffn_up_exps", UpScale), Op{Kind: Act, Dst: ExpertUp, A: ExpertUp, Activation: f})
	p.add(Op{Kind: Experts, Dst: ExpertOut, A: a, Ops: append(ops, perExpert(p, ExpertOut, ExpertUp, "ffn_down_exps"))})
	if !latent {
		p.add(Op{Kind: SumExperts, Dst: X, A: ExpertOut, B: X})
		return
	}
	p.add(Op{Kind: SumExperts, Dst: ExpertSum, A: ExpertOut})
	p.linear(Norm, ExpertSum, "ffn_latent_up")
	p.addX(Norm)
}

// perExpert is the product of a and the weights of each pair's own expert. stack is the name of the tensor with the weights of all experts.
func perExpert(p *program, dst, a Value, stack string) Op {
	return Op{Kind: MulMatID, Dst: dst, A: a, Weight: p.prefix + stack + ".weight"}
}

// PerPair reports whether a row of v has a part for each expert that the row uses.
func (v Value) PerPair() bool {
	return v >= ExpertGate && v <= UpBias || v == ExpertIn || v == GateScale || v == UpScale
}

// mixtureWidth is [Hyper.Width] of the values from Scores to SharedOut and from ExpertIn to UpScale, which only a mixture of experts has.
func (h *Hyper) mixtureWidth(v Value) int {
	m := &h.Experts
	switch v {
	case Scores:
		return m.Count
	case Chosen, ChosenWeights, Pairs, GateScale, UpScale:
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
	case ExpertLatent, ExpertSum:
		return m.LatentLength
	case ExpertOut:
		if m.LatentLength > 0 {
			return m.Used * m.LatentLength
		}
	}
	return m.Used * h.EmbeddingLength * min(1, m.Count)
}
