package arch

import (
	"fmt"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/gguf/quant"
)

// Layer returns layer l of a transformer: llama (Touvron et al. 2023), and those that add to it, as their families say.
func (h *Hyper) Layer(l int, has func(tensor string) bool) []Op {
	ops := h.layer(l, has)
	if l == h.BlockCount-1 {
		return keepAsked(ops)
	}
	return ops
}

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
	if h.Experts.Count > 0 && h.number(l) >= h.Experts.Dense {
		p.mixture(X, Norm)
		return p.ops
	}
	p.linear(Gate, Norm, "ffn_gate")
	p.linear(Up, Norm, "ffn_up")
	p.op(Op{Kind: SwiGLU, Dst: Gate, A: Gate, B: Up})
	p.linear(Norm, Gate, "ffn_down")
	p.op(Op{Kind: Add, Dst: X, A: X, B: Norm})
	return p.ops
}

// usualAttention adds attention of Norm, heads from three products, to X.
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
		p.op(Op{Kind: RMSNorm, Dst: Q, A: q, Weight: p.prefix + "attn_q_norm.weight", Heads: h.HeadCount, Cols: h.KeyLength})
		p.headNorm(K, "attn_k_norm", h.HeadCountKV, h.KeyLength)
	}
	p.rope(Q, h.HeadCount)
	p.rope(K, h.HeadCountKV)
	p.op(Op{Kind: KVAppend, A: K, B: V})
	p.attention(Q, l)
	if h.GatedQuery {
		p.op(Op{Kind: SigmoidMul, Dst: Att, A: Att, B: QueryGate, Heads: h.HeadCount, Off: h.KeyLength})
	}
	p.linear(Norm, Att, "attn_output")
	p.op(Op{Kind: Add, Dst: X, A: X, B: Norm})
}

// Windowed reports whether layer l sees no more positions than the window.
func (h *Hyper) Windowed(l int) bool {
	n := h.WindowPeriod
	return n > 0 && h.number(l)%n < n-1
}

// attention is over all positions or, where a model has a window, over that but in the last of each period of layers.
func (p *program) attention(q Value, l int) {
	o := Op{Kind: Attention, Dst: Att, A: q}
	if p.h.Windowed(l) {
		o.Window = p.h.Window
	}
	if sinks := p.prefix + "attn_sinks.weight"; families[p.h.Architecture].sinks {
		o.Weight = sinks
	}
	p.op(o)
}

// Names of the tensors outside the layers.
const (
	TokenEmbd  = "token_embd.weight"
	OutputNorm = "output_norm.weight"
	Output     = "output.weight"
	OutputBias = "output.bias"
	RopeFreqs  = "rope_freqs.weight"
)

// Head is the tensor that turns hidden states into logits.
func (h *Hyper) Head() string {
	if h.Tied {
		return TokenEmbd
	}
	return Output
}

// want is one tensor a layer must have, with its shape.
type want struct {
	name  string
	shape []int64
}

// wants lists the tensors that layer l's ops read.
func (h *Hyper) wants(ops []Op) []want {
	var ws []want
	for _, o := range ops {
		switch o.Kind {
		case RMSNorm:
			ws = append(ws, want{o.Weight, []int64{int64(o.Cols)}})
		case MulMat:
			shape := []int64{int64(h.Width(o.Dst)), int64(h.Width(o.A))}
			if shape[0] == 1 {
				shape = shape[1:]
			}
			ws = append(ws, want{o.Weight, shape})
		case HeadMulMat:
			ws = append(ws, want{o.Weight, []int64{int64(o.Heads), int64(o.Rows), int64(o.Cols)}})
		case Bias:
			ws = append(ws, want{o.Weight, []int64{int64(h.Width(o.Dst))}})
		case SSMConv:
			ws = append(ws, want{o.Weight, []int64{int64(h.Net.Channels()), int64(h.Net.Taps)}})
		case GatedDeltaNet:
			ws = append(ws, want{o.Weight, []int64{int64(h.Net.Heads)}}, want{o.Weight2, []int64{int64(h.Net.Heads)}})
		case PairRows:
			ws = append(ws, want{o.Weight, []int64{int64(h.Experts.Count), int64(h.PairWidth(o.Dst))}})
		case Attention:
			if o.Weight != "" {
				ws = append(ws, want{o.Weight, []int64{int64(h.HeadCount)}})
			}
		case Route:
			if o.Weight != "" {
				ws = append(ws, want{o.Weight, []int64{int64(h.Width(o.A))}})
			}
		}
	}
	return ws
}

// bind checks that every tensor the model's ops name is there with the right shape
// and a type the kernels take, and reads what the host needs of them.
func (h *Hyper) bind(m *pack.Model) error {
	if len(m.Units) == 0 {
		return fmt.Errorf("bind %s: the file holds a vocabulary only, no weights", m.Path)
	}
	embd, _, ok := m.Tensor(TokenEmbd)
	if !ok {
		return fmt.Errorf("bind %s: tensor %q is missing", m.Path, TokenEmbd)
	}
	if len(embd.Shape) != 2 || embd.Shape[0] < 1 || embd.Shape[0] > maxDim {
		return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted (V, %d)", m.Path, TokenEmbd, embd.Shape, h.EmbeddingLength)
	}
	h.VocabSize = int(embd.Shape[0])
	_, _, untied := m.Tensor(Output)
	h.Tied = !untied
	matrix := []int64{int64(h.VocabSize), int64(h.EmbeddingLength)}
	ws := []want{{TokenEmbd, matrix}, {h.Head(), matrix}, {OutputNorm, []int64{int64(h.EmbeddingLength)}}}
	for _, old := range []struct{ name, want string }{
		{"blk.0.attn_kv_b.weight", "files of newer converters, with attn_k_b and attn_v_b"},
		{"blk.0.ssm_in.weight", "files of newer converters, with attn_qkv and attn_gate"},
		{fmt.Sprintf("blk.%d.ffn_gate_up_exps.weight", h.Experts.Dense), "experts with ffn_gate_exps and ffn_up_exps apart"},
	} {
		if m.Has(old.name) {
			return &UnsupportedError{What: "tensor", Have: old.name, Want: old.want}
		}
	}
	h.Experts.Biased = h.Experts.Count > 0 && m.Has(fmt.Sprintf("blk.%d.ffn_down_exps.bias", h.Experts.Dense))
	for l := range h.BlockCount {
		if _, ok := m.Unit(pack.Layer, l); !ok {
			return fmt.Errorf("bind %s: layer %d of %d is missing", m.Path, l, h.BlockCount)
		}
		ops := h.Layer(l, m.Has)
		ws = append(ws, h.wants(ops)...)
		if err := h.wantExperts(m, l, ops); err != nil {
			return err
		}
	}
	for _, w := range ws {
		if err := checkTensor(m, w); err != nil {
			return err
		}
	}
	if m.Has(OutputBias) {
		return &UnsupportedError{What: "tensor", Have: OutputBias, Want: "models without an output bias"}
	}
	return h.readFactors(m)
}

func checkTensor(m *pack.Model, w want) error {
	t, _, ok := m.Tensor(w.name)
	if !ok {
		return fmt.Errorf("bind %s: tensor %q is missing", m.Path, w.name)
	}
	if err := w.check(m.Path, t); err != nil {
		return err
	}
	if (len(w.shape) == 1 || strings.HasSuffix(w.name, ".ssm_conv1d.weight")) && t.Type != gguf.F32 {
		return &UnsupportedError{What: "tensor " + w.name + " of type", Have: t.Type.String(), Want: "F32 for norms, biases and convolutions"}
	}
	return nil
}

func typeNames() string {
	var names []string
	for _, t := range quant.Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
