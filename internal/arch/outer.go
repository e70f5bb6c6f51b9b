package arch

// Names of the tensors outside the layers.
const (
	TokenEmbd  = "token_embd.weight"
	OutputNorm = "output_norm.weight"
	Output     = "output.weight"
	OutputBias = "output.bias"
	RopeFreqs  = "rope_freqs.weight"
	RopeShort  = "rope_factors_short.weight"
	RopeLong   = "rope_factors_long.weight"
)

// Head is the name of the output matrix, shape (V, D), which turns hidden states into logits: [Output], or [TokenEmbd] if they are tied; "": the model is an encoder and has none.
func (h *Hyper) Head() string {
	switch {
	case h.Encoder:
		return ""
	case h.Tied:
		return TokenEmbd
	}
	return Output
}

// Input is the operations before the first layer, on X, which holds the embeddings of the tokens. has reports whether the file holds a tensor.
func (h *Hyper) Input(has func(tensor string) bool) []Op {
	p := &program{h: h, l: outside, has: has}
	if h.EmbeddingScale != 1 {
		p.add(Op{Kind: Scale, Dst: X, A: X, Factor: h.EmbeddingScale})
	}
	if add := families[h.Architecture].input; add != nil {
		add(p)
	}
	return p.ops
}

// Output is the operations after the last layer, which make Hidden of X. Only rows whose logits are wanted pass through them. The norm that writes Hidden has
// [Op.Multiplied]: the output matrix reads it. has reports whether the file holds a tensor.
func (h *Hyper) Output(has func(tensor string) bool) []Op {
	p := &program{h: h, l: outside, has: has}
	if add := families[h.Architecture].output; add != nil {
		add(p)
	} else {
		p.rms(Hidden, X, "output_norm")
	}
	for i := range p.ops {
		p.ops[i].Multiplied = p.ops[i].Kind == RMSNorm && p.ops[i].Dst == Hidden
	}
	return p.ops
}

// LogitOps is the operations on Logits after the product of Hidden and [Hyper.Head]. has reports whether the file holds a tensor.
func (h *Hyper) LogitOps(has func(tensor string) bool) (ops []Op) {
	if h.Encoder {
		return nil
	}
	if has(OutputScale) && !h.Tied {
		ops = append(ops, Op{Kind: MulWeight, Dst: Logits, A: Logits, Weight: OutputScale, Cols: 1})
	}
	if has(OutputBias) {
		ops = append(ops, Op{Kind: Bias, Dst: Logits, Weight: OutputBias})
	}
	if h.LogitScale != 1 || h.LogitSoftCap != 0 {
		ops = append(ops, Op{Kind: ScaleLogits, Dst: Logits, A: Logits, Factor: h.LogitScale, SoftCap: h.LogitSoftCap})
	}
	return ops
}

// Outer lists the names of the tensors outside the layers that operations read, but not of [TokenEmbd] and [Hyper.Head]. has reports whether the file holds a
// tensor.
func (h *Hyper) Outer(has func(tensor string) bool) (names []string) {
	for _, ops := range [][]Op{h.Input(has), h.Output(has), h.LogitOps(has)} {
		names = append(names, weightsOf(ops)...)
	}
	return names
}
