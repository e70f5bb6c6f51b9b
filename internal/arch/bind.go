package arch

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/gguf/quant"
)

// wantedTensor is a tensor that an operation reads, and the shape that it must have.
type wantedTensor struct {
	name  string  // name of the tensor
	shape []int64 // its shape, outermost first
}

// binding checks a model's tensors against its hyperparameters, and sets the hyperparameters that follow from tensors.
type binding struct {
	h    *Hyper          // the hyperparameters
	m    *pack.Model     // the tensors
	read map[string]bool // by name: tensors that some operation reads
}

// layerTensors lists the tensors that a layer's ops read, except the weights of experts, which expertTensors lists. Biases of experts are among them.
func (b *binding) layerTensors(ops []Op) []wantedTensor {
	h := b.h
	var ws []wantedTensor
	for _, o := range ops {
		switch o.Kind {
		case RMSNorm:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(o.Cols)}})
		case MulMat:
			shape := []int64{int64(h.Width(o.Dst)), int64(h.Width(o.A))}
			if shape[0] == 1 {
				shape = shape[1:]
			}
			ws = append(ws, wantedTensor{o.Weight, shape})
		case HeadMulMat:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(o.Heads), int64(o.Rows), int64(o.Cols)}})
		case Bias:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.Width(o.Dst))}})
		case SSMConv:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.Delta.Channels()), int64(h.Delta.Taps)}})
		case GatedDeltaNet:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.Delta.Heads)}}, wantedTensor{o.Weight2, []int64{int64(h.Delta.Heads)}})
		case PairRows:
			ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.Experts.Count), int64(h.PairWidth(o.Dst))}})
		case Attention:
			if o.Weight != "" {
				ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.HeadCount)}})
			}
		case Route:
			if o.Weight != "" {
				ws = append(ws, wantedTensor{o.Weight, []int64{int64(h.Width(o.A))}})
			}
		}
	}
	return ws
}

// expertTensors lists the weights of one expert that a layer's ops read, each in the shape that it has for one expert.
func (b *binding) expertTensors(ops []Op) []wantedTensor {
	var ws []wantedTensor
	for _, o := range ops {
		for _, e := range o.Ops {
			if e.Kind == MulMatID {
				ws = append(ws, wantedTensor{e.Weight, []int64{int64(b.h.PairWidth(e.Dst)), int64(b.h.PairWidth(e.A))}})
			}
		}
	}
	return ws
}

// bind checks that the model has every layer and every tensor that its ops name, with the right shape and a type that kernels take, and as many tokens as its
// tokenizer. It refuses other tensors, see [binding.checkUnread]. It sets the hyperparameters that follow from tensors: VocabSize, Tied, Experts.Biased and
// Rope.Factors.
func (h *Hyper) bind(m *pack.Model) error {
	b := &binding{h, m, map[string]bool{RopeFreqs: true}}
	if len(m.Units) == 0 {
		return fmt.Errorf("bind %s: the file holds a vocabulary only, no weights", m.Path)
	}
	ws, err := b.outerTensors()
	if err != nil {
		return err
	}
	if err := b.checkVocabulary(); err != nil {
		return err
	}
	h.Experts.Biased = h.Experts.Count > 0 && m.Has(fmt.Sprintf("blk.%d.ffn_down_exps.bias", h.Experts.LeadingDense))
	for l := range h.BlockCount {
		if _, ok := m.Unit(pack.Layer, l); !ok {
			return fmt.Errorf("bind %s: layer %d of %d is missing", m.Path, l, h.BlockCount)
		}
		ops := h.Layer(l, m.Has)
		ws = append(ws, b.layerTensors(ops)...)
		experts := b.expertTensors(ops)
		for _, w := range experts {
			b.read[w.name] = true
		}
		if err := b.checkExperts(l, experts); err != nil {
			return err
		}
	}
	for _, w := range ws {
		b.read[w.name] = true
		if err := checkTensor(m, w); err != nil {
			return err
		}
	}
	if err := b.checkUnread(); err != nil {
		return err
	}
	return b.readFactors()
}

// outerTensors lists the tensors outside the layers. It sets VocabSize and Tied, and refuses files of old converters.
func (b *binding) outerTensors() ([]wantedTensor, error) {
	h, m := b.h, b.m
	embd, _, ok := m.Tensor(TokenEmbd)
	if !ok {
		return nil, fmt.Errorf("bind %s: tensor %q is missing", m.Path, TokenEmbd)
	}
	if len(embd.Shape) != 2 || embd.Shape[0] < 1 || embd.Shape[0] > maxDim {
		return nil, fmt.Errorf("bind %s: tensor %q: found shape %v, wanted (V, %d)", m.Path, TokenEmbd, embd.Shape, h.EmbeddingLength)
	}
	h.VocabSize = int(embd.Shape[0])
	h.Tied = !m.Has(Output)
	for _, old := range []struct{ name, want string }{
		{"blk.0.attn_kv_b.weight", "files of newer converters, with attn_k_b and attn_v_b"},
		{"blk.0.ssm_in.weight", "files of newer converters, with attn_qkv and attn_gate"},
		{fmt.Sprintf("blk.%d.ffn_gate_up_exps.weight", h.Experts.LeadingDense), "experts with ffn_gate_exps and ffn_up_exps apart"},
	} {
		if m.Has(old.name) {
			return nil, &UnsupportedError{What: "tensor", Have: old.name, Want: old.want}
		}
	}
	matrix := []int64{int64(h.VocabSize), int64(h.EmbeddingLength)}
	return []wantedTensor{{TokenEmbd, matrix}, {h.Head(), matrix}, {OutputNorm, []int64{int64(h.EmbeddingLength)}}}, nil
}

// checkVocabulary checks that the tokenizer and the key vocab_size, if the file has them, give the same number of tokens as the embedding has rows.
func (b *binding) checkVocabulary() error {
	h, m := b.h, b.m
	const key = "tokenizer.ggml.tokens"
	if tokens, ok := m.Strings(key); ok && len(tokens) != h.VocabSize {
		return fmt.Errorf("bind %s: key %q: found %d tokens, wanted %d, one for each row of %s", m.Path, key, len(tokens), h.VocabSize, TokenEmbd)
	}
	size := h.Architecture + ".vocab_size"
	if n, ok := m.Int(size); ok && n != int64(h.VocabSize) {
		return fmt.Errorf("bind %s: key %q: found %d, wanted %d, the rows of %s", m.Path, size, n, h.VocabSize, TokenEmbd)
	}
	return nil
}

// checkExperts checks that a layer has all its experts, and that each expert has the tensors in wants, with the right shape and type. If wants is nil, the
// layer needs no experts.
func (b *binding) checkExperts(layer int, wants []wantedTensor) error {
	if wants == nil {
		return nil
	}
	units := b.m.Experts(layer)
	if len(units) != b.h.Experts.Count {
		return fmt.Errorf("bind %s: layer %d: found %d experts, wanted %d", b.m.Path, layer, len(units), b.h.Experts.Count)
	}
	for i := range units {
		for _, w := range wants {
			t, ok := units[i].Tensor(w.name)
			if !ok {
				return fmt.Errorf("bind %s: %s: tensor %q is missing", b.m.Path, units[i].Name, w.name)
			}
			if err := w.check(b.m.Path, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTensor checks that the model has tensor w, with the right shape and a type that kernels take: F32 for vectors and convolutions.
func checkTensor(m *pack.Model, w wantedTensor) error {
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

// check checks a tensor's shape and type. path names the file in errors.
func (w *wantedTensor) check(path string, t *pack.Tensor) error {
	found := t.Shape
	if len(found) == 2 && found[0] == 1 { // a row is a vector
		found = found[1:]
	}
	if !slices.Equal(found, w.shape) {
		return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted %v", path, w.name, t.Shape, w.shape)
	}
	if !quant.Supported(t.Type) {
		return &UnsupportedError{What: "tensor " + w.name + " of type", Have: t.Type.String(), Want: typeNames()}
	}
	return nil
}

// typeNames lists the types of weights that kernels take.
func typeNames() string {
	var names []string
	for _, t := range quant.Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
