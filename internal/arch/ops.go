package arch

// Value names an activation of a step, shape (N, width), float32.
type Value int

// The activations of a layer. Only X, the residual stream, is handed on to the next.
const (
	None  Value = iota // an operation has no such operand
	Cache              // the layer's keys and values of all positions; no activation
	X                  // (N, D) residual stream
	Norm               // (N, D) normalised X, then the branch that is added to X
	Q                  // (N, H*Dk)
	K                  // (N, Hkv*Dk)
	V                  // (N, Hkv*Dv)
	Att                // (N, H*Dv)
	Gate               // (N, F)
	Up                 // (N, F)

	// Of a mixture of experts; a pair is a row and one of its experts.
	Scores     // (N, E) the router's
	Chosen     // (N, K) uint32 experts, the best first
	Share      // (N, K) their weights
	Pairs      // (N, K) uint32 pairs, by expert
	ExpertGate // (N, K, F)
	ExpertUp   // (N, K, F)
	ExpertOut  // (N, K, D)
	GateBias   // (N, K, F)
	UpBias     // (N, K, F)

	// Of the expert that every row uses.
	SharedGate  // (N, Fs)
	SharedUp    // (N, Fs)
	SharedScore // (N, 1)
	SharedOut   // (N, D)

	// Of latent attention.
	QueryLatent // (N, Rq)
	LatentQ     // (N, H*Dk) queries of the cache's keys
	HeadOut     // (N, H*Dv of a head)

	// Of gated attention: each head's query, then its gate.
	QueryGate // (N, H*2*Dk)

	// Of gated delta nets.
	NetIn    // (N, 2*Hk*Dn + Hn*Dn) queries, keys, values
	NetMixed // the same after the convolution
	NetGate  // (N, Hn*Dn)
	Beta     // (N, Hn), or (N, 2*Hn) with the alphas
	Alpha    // (N, Hn), or none
	NetOut   // (N, Hn*Dn)
	NumValues
)

// Kind is what an [Op] does.
type Kind int

// The operations of a layer; each is a kernel of package shaders.
const (
	RMSNorm   Kind = iota // Dst = A / rms(A) * Weight, over rows of Cols
	MulMat                // Dst = A · Weightᵀ
	Bias                  // Dst = Dst + Weight, for each row
	RopeTurn              // Dst is turned in place, Heads heads of Cols values, from value Off of each on
	KVAppend              // A and B, keys and values, are written to the cache
	Attention             // Dst = attention of A over the cache; Weight: attention sinks, one score for each head
	SwiGLU                // Dst = silu(A) * B
	Add                   // Dst = A + B

	// Of a mixture of experts.
	Route      // Chosen and Share are the experts with the best scores A, and their weights
	Experts    // Ops, for each pair with the weights of its expert
	MulMatID   // Dst = A · Wᵀ of each pair's expert, in the Ops of Experts
	SumExperts // Dst = B + the pairs of A by their Share, summed up
	PairRows   // Dst = for each pair, the row of Weight that is its expert's
	SwiGLUOAI  // Dst = silu(1.702*A)/1.702 * (B + 1), A and B clamped to 7
	SigmoidMul // Dst = A * sigmoid(B), B as wide as A or one for a row; of Heads heads of B, from value Off of each on

	// Of a state, which goes on from row to row.
	SSMConv       // Dst = silu of the convolution of A
	GatedDeltaNet // Dst = what the states give A's queries once its keys have written; betas in B, alphas in Alpha or B

	// Of heads, each of which has an equal part of a row.
	HeadMulMat // Rows values of each of Dst = the first Cols values of each of A · its matrix of Weight
	HeadCopy   // Cols values of each of Dst, from Off on, = those of A, from OffA on

	KeepAsked // from here on there are no rows but those that want logits, with these Values

	// What [Fuse] makes of them; Ops are the operations themselves.
	Siblings       // products of A, up to three
	Gated          // Dst = silu(first product of A) * second
	Added          // Dst = product of A, + B
	TurnedAppend   // Q and K are turned, K and V written to the cache
	TurnedProducts // Siblings Q, K and V of A, then TurnedAppend, which are its Ops
	NormedRoute    // Dst = A normalised; Chosen and Share as of Route, by its product with a router, which is not kept
	NormedAppend   // norms of the heads of Q and of K, then TurnedAppend, which are its Ops
)

// Op is one operation of a layer. Ops run in order; each sees what those before it
// wrote.
type Op struct {
	Kind            Kind
	Dst             Value
	A, B            Value
	Weight          string // tensor name, "" where the operation has none
	Weight2         string // another one
	Heads           int    // RopeTurn, HeadMulMat, HeadCopy; RMSNorm over heads
	Rows, Off, OffA int    // Rows: HeadMulMat; Off: RopeTurn, SigmoidMul, HeadCopy; OffA: HeadCopy
	Window          int    // Attention: positions that are seen, the own one with them; 0: all
	Cols            int    // width of what the operation works on

	Values     []Value // of KeepAsked
	Ops        []Op    // of Experts, and of one that Fuse has made: what it stands for, in order
	Multiplied bool    // of an RMSNorm that Fuse has seen: a MulMat reads Dst before it is written anew
}

// Width is the number of float32 values a row of v holds.
func (h *Hyper) Width(v Value) int {
	switch v {
	case None, Cache:
		return 0
	case Q:
		if h.Latent.Rank > 0 {
			return h.HeadCount * h.Latent.Key
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
		if h.Experts.Count > 0 && h.Experts.Dense == 0 {
			return 0 // the experts have their own
		}
		return h.FeedForwardLength
	}
	switch {
	case v >= NetIn:
		return h.Net.width(v)
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

// program collects ops so that a forward pass reads top to bottom.
type program struct {
	h      *Hyper
	prefix string
	has    func(name string) bool
	ops    []Op
}

func (p *program) norm(dst, a Value, weight string) {
	p.ops = append(p.ops, Op{Kind: RMSNorm, Dst: dst, A: a, Weight: p.prefix + weight + ".weight", Heads: 1, Cols: p.h.Width(a)})
}

func (p *program) headNorm(v Value, weight string, heads, headDim int) {
	p.ops = append(p.ops, Op{Kind: RMSNorm, Dst: v, A: v, Weight: p.prefix + weight + ".weight", Heads: heads, Cols: headDim})
}

// linear multiplies by a weight and adds its bias where the file has one.
func (p *program) linear(dst, a Value, weight string) {
	name := p.prefix + weight
	p.ops = append(p.ops, Op{Kind: MulMat, Dst: dst, A: a, Weight: name + ".weight"})
	if p.has(name + ".bias") {
		p.ops = append(p.ops, Op{Kind: Bias, Dst: dst, Weight: name + ".bias"})
	}
}

func (p *program) rope(v Value, heads int) {
	p.ops = append(p.ops, Op{Kind: RopeTurn, Dst: v, Heads: heads, Cols: p.h.KeyLength})
}

func (p *program) op(o Op) { p.ops = append(p.ops, o) }
