package arch

// Value names an activation of a step, shape (N, width), float32 unless its comment says otherwise.
type Value int

// The activations of a layer. Only X, the residual stream, goes on to the next layer.
const (
	None  Value = iota // the operation has no such operand
	Cache              // the layer's keys and values in the KV cache, of all positions; not an activation
	X                  // (N, D) residual stream
	Norm               // (N, D) normalised X, then the output of attention or FFN before it is added to X
	Q                  // (N, H*Dk) queries
	K                  // (N, Hkv*Dk) keys
	V                  // (N, Hkv*Dv) values
	Att                // (N, H*Dv) output of attention
	Gate               // (N, F) gate of the FFN, then its SwiGLU
	Up                 // (N, F) the FFN's other product

	// Values of a mixture of experts. A pair is a row and one of its chosen experts.
	Scores        // (N, E) the router's scores
	Chosen        // (N, K) uint32 ids of the chosen experts, the best first
	ChosenWeights // (N, K) weights of the chosen experts' outputs
	Pairs         // (N, K) uint32 pairs, ordered by expert
	ExpertGate    // (N, K, F) gate of each pair's expert, then its SwiGLU
	ExpertUp      // (N, K, F) the other product of each pair's expert
	ExpertOut     // (N, K, D) output of each pair's expert
	GateBias      // (N, K, F) bias of ExpertGate
	UpBias        // (N, K, F) bias of ExpertUp

	// Values of the shared expert, which every row uses.
	SharedGate  // (N, Fs) gate of the shared expert, then its SwiGLU
	SharedUp    // (N, Fs) the other product of the shared expert
	SharedScore // (N, 1) score of the row: its sigmoid is a factor of the shared expert's output
	SharedOut   // (N, D) output of the shared expert

	// Values of latent attention.
	QueryLatent // (N, Rq) latent that queries are computed from
	LatentQ     // (N, H*Dk) queries that match the latents, which are the keys in the cache
	HeadOut     // (N, H*Latent.ValueLength) output of attention, computed from latents

	// Values of gated attention.
	QueryGate // (N, H*2*Dk) for each head its query, then its gate

	// Values of gated delta nets.
	DeltaIn    // (N, 2*Hk*Dn + Hn*Dn) queries, keys and values of the net
	DeltaMixed // (N, 2*Hk*Dn + Hn*Dn) DeltaIn after the convolution
	DeltaGate  // (N, Hn*Dn) gate of the net's output
	Beta       // (N, Hn) betas, or (N, 2*Hn) betas and alphas: how strongly each head's state takes in a new value
	Alpha      // (N, Hn) alphas, or width 0 if they are in Beta: how fast each head's state fades
	DeltaOut   // (N, Hn*Dn) output of the net
	NumValues  // number of values
)

// Kind is what an [Op] computes.
type Kind int

// The operations of a layer. Each runs as one or more kernels of package shaders, except for Experts, which runs the operations in its Ops, and
// KeepLogitRows, which the caller that runs the step handles.
const (
	RMSNorm   Kind = iota // Dst = A / rms(A) * Weight, over groups of Cols values
	MulMat                // Dst = A · Weightᵀ
	Bias                  // Dst = Dst + Weight, for each row
	RopeHeads             // Dst is rotated in place by rope: Heads heads of Cols values each, from value Off of each head on
	KVAppend              // A and B, keys and values, are written to the KV cache
	Attention             // Dst = attention of the queries A over the KV cache; Weight: attention sinks, one score for each head
	SwiGLU                // Dst = silu(A) * B
	Add                   // Dst = A + B

	// Operations of a mixture of experts, and of gates.
	Route      // Chosen and ChosenWeights are the experts with the best scores A, and their weights; Weight: a bias of the scores
	Experts    // Ops are computed for each pair, with the weights of the pair's expert
	MulMatID   // in the Ops of Experts: Dst = A · Wᵀ, W the matrix Weight of each pair's expert
	SumExperts // Dst = B + the sum of the row's pairs of A, by ChosenWeights
	PairRows   // Dst = for each pair, the row of Weight that belongs to the pair's expert
	SwiGLUOAI  // Dst = silu(1.702*A)/1.702 * (B + 1), A clamped to at most 7, B to -7 … 7
	SigmoidMul // Dst = A * sigmoid(B); B is as wide as A, or one value for a row; with Heads, the values of each head of B from value Off on are read

	// Operations of a delta net, whose state goes on from row to row.
	SSMConv       // Dst = silu of the convolution of A
	GatedDeltaNet // Dst = what the states give A's queries after A's keys and values are written to them; betas in B, alphas in Alpha or B

	// Operations on heads. Each head has an equal part of a row.
	HeadMulMat // for each head: Rows values of Dst = the first Cols values of A · the head's matrix of Weight
	HeadCopy   // for each head: Cols values of Dst, from value Off on = Cols values of A, from value OffA on

	KeepLogitRows // the rows whose logits are wanted, the logit rows, are gathered from Values; later operations see only these rows

	// Fused operations that [Fuse] makes; their Ops are the operations that they replace.
	Siblings          // two or three products of A
	Gated             // Dst = silu(first product of A) * second product of A
	Added             // Dst = product of A, + B
	RopedAppend       // rope of Q and K, then KVAppend
	RopedProducts     // Siblings Q, K and V of A, then RopedAppend: both are its Ops
	NormedRoute       // Dst = A normalised; then Route by the router's product of Dst, which is not written to Scores
	NormedRopedAppend // norms of the heads of Q and of K, then RopedAppend: these three are its Ops
)

// Op is one operation of a layer. Ops run in order; each sees what earlier ones
// wrote.
type Op struct {
	Kind       Kind    // what the operation computes, by the fields below
	Dst        Value   // the value that the operation writes
	A, B       Value   // operands; None: the operation has fewer
	Weight     string  // name of the tensor that the operation reads; "": none
	Weight2    string  // name of a second tensor, of GatedDeltaNet; "": none
	Heads      int     // number of heads of Dst, or of B for SigmoidMul, where the operation works on heads
	Cols       int     // number of values of a head or row that the operation reads
	Rows       int     // number of values of a head that HeadMulMat writes
	Off        int     // first value of a head that RopeHeads or HeadCopy writes, or that SigmoidMul reads of B
	OffA       int     // first value of a head of A that HeadCopy reads
	Window     int     // number of positions that Attention sees, the row's own included; 0: all
	Values     []Value // values that KeepLogitRows keeps
	Ops        []Op    // operations of Experts, and those that a fused operation replaces, in order
	Multiplied bool    // set by Fuse for an RMSNorm: a MulMat reads Dst before it is written again, so the norm's kernel may also prepare Dst for products
}

// Width is the number of values in a row of v; 0: the model has no such value.
func (h *Hyper) Width(v Value) int {
	switch v {
	case None, Cache:
		return 0
	case Q:
		if h.Latent.Rank > 0 {
			return h.HeadCount * h.Latent.KeyLength
		}
		return h.HeadCount * h.KeyLength
	case K:
		return h.HeadCountKV * h.KeyLength
	case V:
		if h.Latent.Rank > 0 {
			return 0 // they are in K
		}
		return h.HeadCountKV * h.ValueLength
	case Att:
		return h.HeadCount * h.ValueLength
	case Gate, Up:
		if h.Experts.Count > 0 && h.Experts.LeadingDense == 0 {
			return 0 // the experts have their own
		}
		return h.FeedForwardLength
	}
	switch {
	case v >= DeltaIn:
		return h.Delta.width(v)
	case v == QueryGate:
		if h.GatedQuery {
			return 2 * h.HeadCount * h.KeyLength
		}
		return 0
	case v >= QueryLatent:
		return h.latentWidth(v)
	}
	if v >= Scores {
		return h.mixtureWidth(v)
	}
	return h.EmbeddingLength
}

// program collects the operations of a layer, so that code that calls its methods reads like a forward pass.
type program struct {
	h      *Hyper                 // the model's hyperparameters
	prefix string                 // what the names of the layer's tensors begin with: blk.N.
	has    func(name string) bool // reports whether the file holds a tensor
	ops    []Op                   // the operations so far
}

// norm adds an RMS norm: each row of dst is the row of a, normalised and multiplied by the weight.
func (p *program) norm(dst, a Value, weight string) {
	p.ops = append(p.ops, Op{Kind: RMSNorm, Dst: dst, A: a, Weight: p.prefix + weight + ".weight", Heads: 1, Cols: p.h.Width(a)})
}

// headNorm adds an RMS norm of each head of v, in place.
func (p *program) headNorm(v Value, weight string, heads, headDim int) {
	p.ops = append(p.ops, Op{Kind: RMSNorm, Dst: v, A: v, Weight: p.prefix + weight + ".weight", Heads: heads, Cols: headDim})
}

// linear adds the product of a and a weight, and the weight's bias if the file has one.
func (p *program) linear(dst, a Value, weight string) {
	name := p.prefix + weight
	p.ops = append(p.ops, Op{Kind: MulMat, Dst: dst, A: a, Weight: name + ".weight"})
	if p.has(name + ".bias") {
		p.ops = append(p.ops, Op{Kind: Bias, Dst: dst, Weight: name + ".bias"})
	}
}

// rope adds rope of the heads of v, of KeyLength values each, in place.
func (p *program) rope(v Value, heads int) {
	p.ops = append(p.ops, Op{Kind: RopeHeads, Dst: v, Heads: heads, Cols: p.h.KeyLength})
}

// add adds an operation.
func (p *program) add(o Op) { p.ops = append(p.ops, o) }
