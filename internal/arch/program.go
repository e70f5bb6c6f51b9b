package arch

import (
	"fmt"
	"math"
)

// program collects the operations of a layer, or of what comes before or after the layers, so that code that calls its methods reads like a forward pass.
type program struct {
	h      *Hyper                 // the model's hyperparameters
	l      int                    // the layer; outside: before or after the layers
	prefix string                 // the first part of the names of the layer's tensors, blk.N.; "" with outside
	has    func(name string) bool // reports whether the file holds a tensor
	ops    []Op                   // the operations so far
}

// outside is program.l before and after the layers.
const outside = -1

// Layer is the operations of layer l. The last layer has [KeepLogitRows] among them, unless the model is an encoder. has reports whether the file holds a tensor.
func (h *Hyper) Layer(l int, has func(tensor string) bool) []Op {
	p := &program{h: h, l: l, prefix: fmt.Sprintf("blk.%d.", l), has: has}
	families[h.Architecture].layer(p)
	if l == h.BlockCount-1 && !h.Encoder {
		return keepLogitRows(p.ops)
	}
	return p.ops
}

// shape is the layer's LayerShape. The program must not be outside the layers.
func (p *program) shape() *LayerShape { return &p.h.Layers[p.l] }

// width is the number of values in a row of v.
func (p *program) width(v Value) int { return p.h.Width(p.l, v) }

// hasWeight reports whether the file holds the layer's tensor NAME.weight.
func (p *program) hasWeight(name string) bool { return p.has(p.prefix + name + ".weight") }

// add adds operations.
func (p *program) add(ops ...Op) { p.ops = append(p.ops, ops...) }

// rms adds an RMS norm: each row of dst is the row of a, normalised and multiplied by the weight; weight "": by nothing.
func (p *program) rms(dst, a Value, weight string) {
	p.add(Op{Kind: RMSNorm, Dst: dst, A: a, Weight: p.weight(weight), Heads: 1, Cols: p.width(a)})
}

// headRMS adds an RMS norm of each head of v, in place; with one head, of the whole row.
func (p *program) headRMS(v Value, weight string, heads, cols int) {
	p.add(Op{Kind: RMSNorm, Dst: v, A: v, Weight: p.weight(weight), Heads: heads, Cols: cols})
}

// ln adds a layer norm: each row of dst is the row of a, normalised, multiplied by the weight, and its bias added where the file has one; weight "": neither.
func (p *program) ln(dst, a Value, weight string) {
	o := Op{Kind: LayerNorm, Dst: dst, A: a, Weight: p.weight(weight), Heads: 1, Cols: p.width(a)}
	if weight != "" {
		o.Weight2 = optional(p, weight+".bias")
	}
	p.add(o)
}

// weight is the name of the layer's tensor NAME.weight; "" for "".
func (p *program) weight(name string) string {
	if name == "" {
		return ""
	}
	return p.prefix + name + ".weight"
}

// optional is the whole name of the layer's tensor of the given name, such as attn_q.bias; "" if the file does not have it.
func optional(p *program, name string) string {
	if name = p.prefix + name; p.has(name) {
		return name
	}
	return ""
}

// linear adds the product of a and the matrix of the given name, and its scale and bias if the file has them.
func (p *program) linear(dst, a Value, weight string) { p.linearRows(dst, a, weight, 0) }

// linearRows is [program.linear] with a part of the matrix, and of its bias: its rows from first on, as many as dst has columns.
func (p *program) linearRows(dst, a Value, weight string, first int) {
	p.add(Op{Kind: MulMat, Dst: dst, A: a, Weight: p.weight(weight), Row: first})
	if scale := scaleOf(p, weight); scale != "" {
		p.add(Op{Kind: MulWeight, Dst: dst, A: dst, Weight: scale, Cols: 1})
	}
	if bias := optional(p, weight+".bias"); bias != "" {
		p.add(Op{Kind: Bias, Dst: dst, Weight: bias, Row: first})
	}
}

// qkv adds the products of a that make Q, K and V: with three matrices, or with parts of one.
func (p *program) qkv(a Value) {
	if p.hasWeight("attn_qkv") {
		p.linearRows(Q, a, "attn_qkv", 0)
		p.linearRows(K, a, "attn_qkv", p.width(Q))
		p.linearRows(V, a, "attn_qkv", p.width(Q)+p.width(K))
		return
	}
	p.linear(Q, a, "attn_q")
	p.linear(K, a, "attn_k")
	p.linear(V, a, "attn_v")
}

// rope adds rope, in place, of all heads of Q and, if the layer makes keys, of K. It adds nothing if the layer has no rope.
func (p *program) rope() {
	s := p.shape()
	if s.Rope == NoRope {
		return
	}
	p.add(Op{Kind: RopeHeads, Dst: Q, Heads: s.HeadCount, Cols: s.KeyLength, Rope: s.Rope})
	if s.Borrows {
		return
	}
	p.add(Op{Kind: RopeHeads, Dst: K, Heads: s.HeadCountKV, Cols: s.KeyLength, Rope: s.Rope})
}

// attend adds the writes of K and V to the KV cache, if the layer makes them, then attention of the queries Q over it, to Att.
func (p *program) attend() {
	if !p.shape().Borrows {
		p.add(Op{Kind: KVAppend, A: K, B: V})
	}
	p.attendTo(Q, "")
}

// attendTo adds attention of the queries q over the KV cache, to Att. sinks is the name of the tensor of attention sinks; "": there are none.
func (p *program) attendTo(q Value, sinks string) {
	p.add(Op{Kind: Attention, Dst: Att, A: q, Weight: p.weight(sinks), Mask: p.shape().Mask, SoftCap: p.h.AttentionSoftCap})
}

// headLN adds a layer norm of each head of v, in place: each head has weights of its own, and there is no bias.
func (p *program) headLN(v Value, weight string, heads, cols int) {
	p.add(Op{Kind: LayerNorm, Dst: v, A: v, Weight: p.weight(weight), Heads: heads, Cols: cols, PerHead: true})
}

// act adds an activation of v, in place. params are its numbers, see [Activation].
func (p *program) act(v Value, f Activation, params ...float32) {
	o := Op{Kind: Act, Dst: v, A: v, Activation: f}
	copy(o.Params[:], params)
	p.add(o)
}

// ffn adds a gated FFN of a, to dst: its gate is glu, one of SwiGLU, GeGLU and GeGLUErf.
func (p *program) ffn(dst, a Value, glu Kind) {
	p.linear(Gate, a, "ffn_gate")
	p.linear(Up, a, "ffn_up")
	p.add(clampGLU(Gate, Up, p.shape().Bounds.FFN)...)
	p.add(Op{Kind: glu, Dst: Gate, A: Gate, B: Up})
	p.linear(dst, Gate, "ffn_down")
}

// fusedFFN is [program.ffn] with ffn_up the rows of the gate, then those of the other product.
func (p *program) fusedFFN(dst, a Value, glu Kind) {
	p.linearRows(Gate, a, "ffn_up", 0)
	p.linearRows(Up, a, "ffn_up", p.width(Gate))
	p.add(Op{Kind: glu, Dst: Gate, A: Gate, B: Up})
	p.linear(dst, Gate, "ffn_down")
}

// plainFFN adds an FFN of a without a gate, to dst: f is the activation between its two products, params are its numbers.
func (p *program) plainFFN(dst, a Value, f Activation, params ...float32) {
	p.linear(Up, a, "ffn_up")
	p.act(Up, f, params...)
	p.linear(dst, Up, "ffn_down")
}

// feedForward adds an RMS norm of X with the weight of the given name, then the layer's FFN or mixture of experts, and adds its output to X. It overwrites Norm.
func (p *program) feedForward(norm string) {
	p.rms(Norm, X, norm)
	switch {
	case p.shape().Experts && p.h.ResidualScale == 1:
		p.mixture(X, X, Norm)
	case p.shape().Experts:
		p.mixture(Out, None, Norm)
		p.addX(Out)
	default:
		p.ffn(Norm, Norm, SwiGLU)
		p.addX(Norm)
	}
}

// addX adds v, times ResidualScale, to X.
func (p *program) addX(v Value) {
	o := Op{Kind: Add, Dst: X, A: X, B: v}
	if p.h.ResidualScale != 1 {
		o.Factor = p.h.ResidualScale
	}
	p.add(o)
}

// clampGLU returns operations that clamp the two products of a gated FFN before its SwiGLU: gate so that silu(gate) is at most bound, up to -bound … bound. With bound 0
// there are none.
func clampGLU(gate, up Value, bound float64) []Op {
	if bound == 0 {
		return nil
	}
	return []Op{
		{Kind: Act, Dst: gate, A: gate, Activation: Clamp, Params: [4]float32{-math.MaxFloat32, float32(siluInverse(bound))}},
		{Kind: Act, Dst: up, A: up, Activation: Clamp, Params: [4]float32{float32(-bound), float32(bound)}},
	}
}

// siluInverse is the x above 0 whose silu is y, y above 0: where x is larger, so is its silu.
func siluInverse(y float64) float64 {
	x := y + 1
	for range 50 {
		s := 1 / (1 + math.Exp(-x))
		x -= (x*s - y) / (s * (1 + x*(1-s)))
	}
	return x
}
