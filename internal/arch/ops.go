package arch

// Value names an activation of a step, shape (N, width), float32 unless its comment says otherwise.
type Value int

// The activations of a layer. Only X, the residual stream, and LayerInputs go on to the next layer. [Hyper.Width] and [Value.PerPair] compare by ranges of this list, so values
// of one group stay together, in this order.
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
	ExpertGate    // (N, K, Fe) gate of each pair's expert, then its SwiGLU
	ExpertUp      // (N, K, Fe) the other product of each pair's expert
	ExpertOut     // (N, K, D) or (N, K, Z) output of each pair's expert; Z if experts read latents
	GateBias      // (N, K, Fe) bias of ExpertGate
	UpBias        // (N, K, Fe) bias of ExpertUp

	// Values of the shared expert, which every row uses.
	SharedGate  // (N, Fs) gate of the shared expert, then its SwiGLU
	SharedUp    // (N, Fs) the other product of the shared expert
	SharedScore // (N, 1) score of the row: its sigmoid is a factor of the shared expert's output
	SharedOut   // (N, D) output of the shared expert

	// Values of latent attention.
	QueryLatent // (N, Rq) latent that queries are computed from
	LatentQ     // (N, H*Dk) queries that match the latents, which are the keys in the cache
	HeadOut     // (N, H*Latent.ValueLength) Att times each head's matrix for values: the heads' outputs, of which Att holds weighted sums of latents

	// Values of gated attention.
	QueryGate // (N, H*2*Dk) for each head its query, then its gate

	// Values of gated delta nets.
	DeltaIn    // (N, 2*Hk*Dn + Hn*Dn) queries, keys and values of the net
	DeltaMixed // (N, 2*Hk*Dn + Hn*Dn) DeltaIn after the convolution
	DeltaGate  // (N, Hn*Dn) gate of the net's output
	Beta       // (N, Hn) betas, or (N, 2*Hn) betas and alphas: how strongly each head's state takes in a new value
	Alpha      // (N, Hn) alphas, or (N, Hn*Dn) one for each row of a head's state, or width 0 if they are in Beta: how fast each head's state fades
	DeltaQ     // (N, Hn*Dn) queries of a net whose queries, keys and values have convolutions of their own
	DeltaK     // (N, Hn*Dn) keys of such a net
	DeltaV     // (N, Hn*Dn) values of such a net
	DeltaLow   // (N, Dn) what Alpha or DeltaGate is computed from
	DeltaOut   // (N, Hn*Dn) output of the net

	// Values of layers in which attention and FFN read the same row.
	Out     // (N, D) output of attention or of the FFN, where Norm is still read
	FFNOut  // (N, D) output of an FFN beside experts
	AttGate // (N, H*Dv) gate of attention's output

	HeadGate // (N, H) gates of the heads of attention's output

	// Values of latent attention whose keys and values are computed from the latent.
	KVLatent // (N, R) latent
	KRoped   // (N, Dr) the rotated part of a key, which all heads share
	KVHeads  // (N, H*(Dk-Dr+Dv)) for each head the part of its key that is not rotated, then its value

	// Values of Mamba 1 and 2.
	SSMGate  // (N, Di) gate z of the output
	SSMIn    // (N, Di) or (N, Di+2*G*Ns) input of the convolution: u, or x, B and C
	SSMMixed // as SSMIn, after the convolution
	SSMDelta // (N, Di) or (N, Hm) time steps Δ
	SSMLow   // (N, Rm) what Mamba 1 computes Δ from
	SSMBC    // (N, 2*Ns) B and C of Mamba 1
	SSMOut   // (N, Di) output of the scan

	// Values of short convolutions.
	ConvB  // (N, D) gate of the convolution's input, then the convolution's output
	ConvC  // (N, D) gate of the convolution's output
	ConvIn // (N, D) input of the convolution

	ExpertIn     // (N, K, D) input of each pair's expert: the row times the expert's weight
	ExpertLatent // (N, Z) latent of the row, which experts of latents read
	ExpertSum    // (N, Z) sum of the outputs of the row's experts of latents
	GateScale    // (N, K) scale of ExpertGate
	UpScale      // (N, K) scale of ExpertUp

	// Values of layers with inputs of their own.
	LayerInputs   // (N, L*Dp) the inputs of all layers
	LayerProducts // (N, L*Dp) product of X, added to the embeddings in LayerInputs
	OwnInput      // (N, Dp) the layer's part of LayerInputs
	LayerGate     // (N, Dp) gate of OwnInput, then its product with OwnInput

	// Values after the layers, of the rows whose logits are wanted.
	Hidden    // (N, D) what the output matrix multiplies
	Logits    // (N, V) logits
	NumValues // number of values
)

// Kind is what an [Op] computes.
type Kind int

// The operations of a layer. Each runs as one or more kernels of package shaders, except for Experts, which runs the operations in its Ops, and
// KeepLogitRows, which the caller that runs the step handles.
const (
	RMSNorm   Kind = iota // Dst = A / rms(A) * Weight * Factor, over groups of Cols values; Weight "": 1. With one head, only Cols values of a row, from value Off on
	LayerNorm             // Dst = (A - mean(A)) / deviation(A) * Weight + Weight2, over groups of Cols values; Weight "": 1, Weight2 "": 0
	MulMat                // Dst = A · Weightᵀ, of Weight's rows from Row on
	Bias                  // Dst = Dst + Weight, for each row, of Weight's values from Row on; Rows: Weight has that many rows, and the first is added
	RopeHeads             // Dst is rotated in place by rope: Heads heads of Cols values each, from value Off of each head on
	KVAppend              // A and B, keys and values, are written to the KV cache
	Attention             // Dst = attention of the queries A over the KV cache; Weight: attention sinks, one score for each head
	SwiGLU                // Dst = silu(A) * B
	GeGLU                 // Dst = gelu(A) * B, gelu by tanh
	GeGLUErf              // Dst = gelu(A) * B, gelu by erf
	Act                   // Dst = Activation of A
	Add                   // Dst = A + Factor * B
	Mul                   // Dst = A * B; in the Ops of Experts, B may have one value for each pair
	MulWeight             // Dst = A * Weight, which has one value for all columns or one for each
	Scale                 // Dst = Factor * A
	ScaleRows             // Dst = A, each row times its factor by Hyper.RowScale
	AddRows               // Dst = Dst + the row of Weight that belongs to the row's position

	// Operations of a mixture of experts, and of gates.
	Route      // Chosen and ChosenWeights are the experts with the best scores A, and their weights; Weight: a bias of the scores; Weight2: a factor of each expert's weight
	Experts    // Ops are computed for each pair, with the weights of the pair's expert
	MulMatID   // in the Ops of Experts: Dst = A · Wᵀ, W the matrix Weight of each pair's expert, its rows from Row on
	SumExperts // Dst = B + the sum of the row's pairs of A, by ChosenWeights, or with Plain without weights; B None: 0
	PairRows   // Dst = for each pair, the row of Weight that belongs to the pair's expert
	PairScale  // Dst = for each pair, the row of A times the pair's weight
	SwiGLUOAI  // Dst = silu(1.702*A)/1.702 * (B + 1), A clamped to at most 7, B to -7 … 7
	SigmoidMul // Dst = A * sigmoid(B); B is as wide as A, or one value for a row or, with Heads, for each head; or the values of each head of B from value Off on are read

	// Operations of a state, which goes on from row to row.
	SSMConv       // Dst, from value Off of a row on, = silu of the convolution of the last Cols rows of A by Weight, + Weight2; with Linear without silu
	GatedDeltaNet // Dst = what the states give A's queries after A's keys and values are written to them; betas in B, alphas in Alpha or B
	SelectiveScan // Dst = Mamba 1's scan of the inputs A by the time steps SSMDelta, with B and C in B; Weight: ssm_a; Weight2: ssm_d; Weight3: bias of the time steps
	StateSpace    // Dst = Mamba 2's scan of A, which holds x, B and C, by the time steps B, at least DeltaMin; weights as of SelectiveScan

	// Operations on heads. Each head has an equal part of a row.
	HeadMulMat // for each head: Rows values of Dst = the first Cols values of A · the head's matrix of Weight
	HeadCopy   // for each head: Cols values of Dst, from value Off on = Cols values of A, from value OffA on; with OneHead, A has one head, which all heads of Dst get

	KeepLogitRows // the rows whose logits are wanted, the logit rows, are gathered from Values; later operations see only these rows
	ScaleLogits   // Dst = SoftCap * tanh(Factor * A / SoftCap); SoftCap 0: Dst = Factor * A

	// Fused operations that [Fuse] makes; their Ops are the operations that they replace.
	Siblings          // two or three products of A
	Gated             // Dst = silu(first product of A) * second product of A
	Added             // Dst = product of A, + B
	RopedAppend       // rope of Q and K, then KVAppend
	RopedProducts     // Siblings Q, K and V of A, then RopedAppend: both are its Ops
	NormedRoute       // Dst = A normalised; then Route by the router's product of Dst, which is not written to Scores
	NormedRopedAppend // norms of the heads of Q and of K, then RopedAppend: these three are its Ops
)

// Activation is a function of one value, which [Act] applies to each. Its numbers are [Op.Params].
type Activation int

// The activations.
const (
	GELU    Activation = iota + 1 // x/2 * (1 + tanh(√(2/π) * (x + 0.044715 x³)))
	GELUErf                       // x/2 * (1 + erf(x/√2))
	ReLU2                         // max(x, 0)²
	XIELU                         // a*x² + b*x if x > 0, else n*(expm1(min(x, e)) - x) + b*x; Params: a, n, b, e
	Clamp                         // x, but at least a and at most b; Params: a, b
)

// Op is one operation of a layer. Ops run in order; each sees what earlier ones wrote. Fields that a kind doesn't name are zero.
type Op struct {
	Kind       Kind       // what the operation computes, by the fields below
	Dst        Value      // the value that the operation writes
	A, B       Value      // operands; None: the operation has fewer
	Weight     string     // name of the tensor that the operation reads; "": none
	Weight2    string     // name of a second tensor; "": none
	Weight3    string     // name of a third tensor; "": none
	Row        int        // first row of Weight that the operation reads: it reads as many as Dst has columns
	Heads      int        // number of heads of Dst, or of B for SigmoidMul, where the operation works on heads
	Cols       int        // number of values of a head or row, or for SSMConv of rows, that the operation reads
	Rows       int        // number of values of a head that HeadMulMat writes; number of rows of the Weight of Bias, 0: it is a vector
	Off        int        // first value of a head that RopeHeads, RMSNorm or HeadCopy writes, or that SigmoidMul reads of B; first value of a row that SSMConv writes
	OffA       int        // first value of a head of A that HeadCopy reads
	Activation Activation // function that Act applies
	Params     [4]float32 // numbers of Activation
	Factor     float32    // factor of Add, RMSNorm and ScaleLogits, 0: 1; of Scale; of Attention's scores, 0: Hyper.AttentionScale
	SoftCap    float32    // bound of Attention's scores or of ScaleLogits; 0: none
	DeltaMin   float32    // least time step of StateSpace
	PerHead    bool       // the weights of a norm have a row for each head; if not, all heads have the same
	OneHead    bool       // A of HeadCopy has one head
	Plain      bool       // SumExperts leaves out the weights
	Linear     bool       // SSMConv leaves out silu
	Rope       int        // index in Hyper.Ropes of what RopeHeads rotates by, also in fused operations
	Mask       int        // index in Hyper.Masks of what rows see by Attention
	Values     []Value    // values that KeepLogitRows keeps
	Ops        []Op       // operations of Experts, and those that a fused operation replaces, in order
	Multiplied bool       // set for an RMSNorm by Fuse and Hyper.Output: a MulMat reads Dst before it is written again, so the norm's kernel may also prepare Dst for products
}
