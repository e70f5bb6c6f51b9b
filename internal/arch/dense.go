package arch

import "fmt"

// Layer is the operations of layer l of a transformer: llama (Touvron et al. 2023) with what the architecture's family changes. The
// last layer has [KeepLogitRows] among them. has reports whether the file holds a tensor.
func (h *Hyper) Layer(l int, has func(tensor string) bool) []Op {
	ops := h.layer(l, has)
	if l == h.BlockCount-1 {
		return keepLogitRows(ops)
	}
	return ops
}

// layer is [Hyper.Layer] without [KeepLogitRows] in the last layer.
func (h *Hyper) layer(l int, has func(tensor string) bool) []Op {
	p := &program{h: h, prefix: fmt.Sprintf("blk.%d.", l), has: has}

	p.norm(Norm, X, "attn_norm")
	switch {
	case h.Latent.Rank > 0:
		p.latentAttention(l)
	case h.Recurrent(l):
		p.deltaNet()
	default:
		p.usualAttention(l)
	}

	p.norm(Norm, X, families[h.Architecture].ffnNorm())
	if h.Experts.Count > 0 && h.modelLayer(l) >= h.Experts.LeadingDense {
		p.mixture(X, Norm)
		return p.ops
	}
	p.linear(Gate, Norm, "ffn_gate")
	p.linear(Up, Norm, "ffn_up")
	p.add(Op{Kind: SwiGLU, Dst: Gate, A: Gate, B: Up})
	p.linear(Norm, Gate, "ffn_down")
	p.add(Op{Kind: Add, Dst: X, A: X, B: Norm})
	return p.ops
}

// usualAttention adds attention that reads Norm, with Q, K and V from three products, and adds its output to X. Some models norm the heads of Q and K before
// rope. Some multiply attention's output by a gate, which comes out of the product for Q.
func (p *program) usualAttention(l int) {
	h := p.h
	fam, q := families[h.Architecture], Q
	if h.GatedQuery {
		q = QueryGate
	}
	p.linear(q, Norm, "attn_q")
	p.linear(K, Norm, "attn_k")
	p.linear(V, Norm, "attn_v")
	if fam.qkNorm || fam.mayNorm && p.has(p.prefix+"attn_q_norm.weight") {
		p.add(Op{Kind: RMSNorm, Dst: Q, A: q, Weight: p.prefix + "attn_q_norm.weight", Heads: h.HeadCount, Cols: h.KeyLength})
		p.headNorm(K, "attn_k_norm", h.HeadCountKV, h.KeyLength)
	}
	p.rope(Q, h.HeadCount)
	p.rope(K, h.HeadCountKV)
	p.add(Op{Kind: KVAppend, A: K, B: V})
	p.attention(Q, l)
	if h.GatedQuery {
		p.add(Op{Kind: SigmoidMul, Dst: Att, A: Att, B: QueryGate, Heads: h.HeadCount, Off: h.KeyLength})
	}
	p.linear(Norm, Att, "attn_output")
	p.add(Op{Kind: Add, Dst: X, A: X, B: Norm})
}

// Windowed reports whether the attention of layer l sees only the last Window positions.
func (h *Hyper) Windowed(l int) bool {
	n := h.WindowPeriod
	return n > 0 && h.modelLayer(l)%n < n-1
}

// attention adds attention of the queries q over the KV cache of layer l, which may have a window or attention sinks.
func (p *program) attention(q Value, l int) {
	o := Op{Kind: Attention, Dst: Att, A: q}
	if p.h.Windowed(l) {
		o.Window = p.h.Window
	}
	if sinks := p.prefix + "attn_sinks.weight"; families[p.h.Architecture].sinks {
		o.Weight = sinks
	}
	p.add(o)
}

// Names of the tensors outside the layers.
const (
	TokenEmbd  = "token_embd.weight"  // embeddings, a row for each token
	OutputNorm = "output_norm.weight" // weights of the norm before the head
	Output     = "output.weight"      // matrix of the head; models without one use token_embd
	RopeFreqs  = "rope_freqs.weight"  // divisors of rope's frequencies
)

// Head is the name of the matrix that turns hidden states into logits.
func (h *Hyper) Head() string {
	if h.Tied {
		return TokenEmbd
	}
	return Output
}
