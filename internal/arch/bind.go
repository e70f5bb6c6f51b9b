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
	name  string      // name of the tensor
	shape []int64     // its shape, outermost first
	types []gguf.Type // the types that it may have; nil: all that kernels read weights in, see [quant.Supported]
}

// The types of norms, biases and convolutions, and of tables whose rows are added.
var (
	f32s   = []gguf.Type{gguf.F32}
	floats = []gguf.Type{gguf.F32, gguf.F16, gguf.BF16}
)

// binding checks a model's tensors against its hyperparameters, and sets the hyperparameters that follow from tensors.
type binding struct {
	h     *Hyper          // the hyperparameters
	m     *pack.Model     // the tensors
	known map[string]bool // by name: tensors that an operation or the host reads, or that [binding.allow] allows; checkUnread refuses the others
	want  []wantedTensor  // the shapes and types to check, but not those of the weights of experts

	layerStart int // index in want of the first tensor of the layer that is being added
}

// wants adds a tensor that an operation reads; none if name is "". If several operations of a layer read parts of one matrix, or of one bias, it must have the rows of
// all parts.
func (b *binding) wants(name string, types []gguf.Type, shape ...int) {
	w := wantedTensor{name: name, types: types}
	for _, n := range shape {
		w.shape = append(w.shape, int64(n))
	}
	if name == "" {
		return
	}
	if i := slices.IndexFunc(b.want[b.layerStart:], func(w wantedTensor) bool { return w.name == name }); i >= 0 {
		w := &b.want[b.layerStart+i]
		w.shape[0] = max(w.shape[0], int64(shape[0]))
		return
	}
	b.want = append(b.want, w)
}

// allow adds a tensor of layer l that the file may have although no operation reads it. If the file has it, its shape and type must be right.
func (b *binding) allow(l int, name string, types []gguf.Type, shape ...int) {
	if name = fmt.Sprintf("blk.%d.%s", l, name); b.m.Has(name) {
		b.wants(name, types, shape...)
	}
}

// addTensors adds the tensors that operations of layer l read, biases of experts included. It leaves out the weights of experts, which expertTensors lists. It sets
// Hyper.Positions if the model has embeddings of positions.
func (b *binding) addTensors(l int, ops []Op) {
	h := b.h
	b.layerStart = len(b.want)
	for i := range ops {
		o := &ops[i]
		to, from := h.Width(l, o.Dst), h.Width(l, o.A)
		switch o.Kind {
		case RMSNorm, LayerNorm:
			shape := []int{o.Cols}
			if o.PerHead {
				shape = []int{o.Heads, o.Cols}
			}
			b.wants(o.Weight, f32s, shape...)
			b.wants(o.Weight2, f32s, shape...)
		case MulMat:
			if o.Row+to == 1 {
				b.wants(o.Weight, f32s, from)
				continue
			}
			b.wants(o.Weight, nil, o.Row+to, from)
		case HeadMulMat:
			b.wants(o.Weight, nil, o.Heads, o.Rows, o.Cols)
		case Bias:
			b.wants(o.Weight, f32s, biasShape(o, to)...)
		case MulWeight:
			b.wants(o.Weight, f32s, o.Cols)
		case AddRows:
			h.Positions = h.ContextLength
			b.wants(o.Weight, floats, h.Positions, to)
		case SSMConv:
			b.wants(o.Weight, f32s, from, o.Cols)
			b.wants(o.Weight2, f32s, from)
		case GatedDeltaNet:
			b.wants(o.Weight, f32s, h.Delta.Heads)
			b.wants(o.Weight2, f32s, max(h.Delta.Heads, h.Width(l, Alpha)))
		case SelectiveScan:
			b.wants(o.Weight, f32s, to, h.Mamba.State)
			b.wants(o.Weight2, f32s, to)
			b.wants(o.Weight3, f32s, to)
		case StateSpace:
			for _, name := range []string{o.Weight, o.Weight2, o.Weight3} {
				b.wants(name, f32s, h.Mamba.Heads)
			}
		case PairRows:
			if o.Dst == GateScale || o.Dst == UpScale {
				b.wants(o.Weight, f32s, h.Experts.Count)
				continue
			}
			b.wants(o.Weight, nil, h.Experts.Count, h.PairWidth(l, o.Dst))
		case Attention:
			b.wants(o.Weight, f32s, h.Layers[l].HeadCount)
		case Route:
			b.wants(o.Weight, f32s, from)
			b.wants(o.Weight2, f32s, from)
		}
	}
}

// biasShape is the shape of the weight of a Bias whose Dst has the given width.
func biasShape(o *Op, width int) []int {
	if o.Rows > 0 {
		return []int{o.Rows, width}
	}
	return []int{o.Row + width}
}

// expertTensors lists the weights of one expert that the ops of layer l read, each in the shape that it has for one expert.
func (b *binding) expertTensors(l int, ops []Op) []wantedTensor {
	var ws []wantedTensor
	for _, o := range ops {
		for _, e := range o.Ops {
			if e.Kind != MulMatID {
				continue
			}
			rows, cols := int64(e.Row+b.h.PairWidth(l, e.Dst)), int64(b.h.PairWidth(l, e.A))
			if n := len(ws); n > 0 && ws[n-1].name == e.Weight { // two parts of one tensor
				ws[n-1].shape[0] = max(ws[n-1].shape[0], rows)
				continue
			}
			ws = append(ws, wantedTensor{name: e.Weight, shape: []int64{rows, cols}})
		}
	}
	return ws
}

// bind checks that the model has every layer and every tensor that its ops name, with the right shape and a type that kernels take, and as many tokens as its
// tokenizer. It refuses other tensors, see [binding.checkUnread]. It sets the hyperparameters that follow from tensors: VocabSize, Tied, Experts.Biased,
// Positions, Dense, and Factors and Long of the first rope.
func (h *Hyper) bind(m *pack.Model) error {
	b := &binding{h: h, m: m, known: map[string]bool{}}
	b.markFactors()
	if len(m.Units) == 0 {
		return fmt.Errorf("bind %s: the file holds a vocabulary only, no weights", m.Path)
	}
	for _, check := range []func() error{b.sizeDense, b.addOuter, b.checkOldConverter, b.checkVocabulary, b.addLayers} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, w := range b.want {
		b.known[w.name] = true
	}
	for _, w := range b.want {
		if err := b.checkTensor(w); err != nil {
			return err
		}
	}
	for _, step := range []func() error{b.checkUnread, b.readFactors, b.readDense} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// addLayers adds the tensors of all layers, and checks those of experts. It sets Experts.Biased and what [Hyper.MaxWidth] needs.
func (b *binding) addLayers() error {
	h, m := b.h, b.m
	if l := firstExperts(h); l >= 0 {
		for _, stack := range []string{"gate", "up", "down"} {
			h.Experts.Biased = h.Experts.Biased || m.Has(fmt.Sprintf("blk.%d.ffn_%s_exps.bias", l, stack))
		}
	}
	h.touched[X] = true
	touch(h, h.Input(m.Has))
	layers, tensors := make([][]Op, h.BlockCount), make([]layerTensors, h.BlockCount)
	for l := range layers {
		if _, ok := m.Unit(pack.Layer, l); !ok {
			return fmt.Errorf("bind %s: layer %d of %d is missing: no tensor blk.%d.*", m.Path, l, h.BlockCount, l)
		}
		layers[l] = h.Layer(l, m.Has)
		tensors[l] = b.tensorsOf(l, layers[l])
		for _, name := range weightsOf(layers[l]) {
			b.known[name] = true
		}
	}
	if err := b.checkUniform(layers, tensors); err != nil {
		return err
	}
	for l, ops := range layers {
		touch(h, ops)
		b.addTensors(l, ops)
		b.allowIndexer(l)
		b.allowBorrowedKeys(l)
		if err := b.checkParts(ops); err != nil {
			return err
		}
		experts := b.expertTensors(l, ops)
		if err := b.checkExperts(l, experts); err != nil {
			return err
		}
	}
	return nil
}

// firstExperts is the first layer with experts; -1: there is none.
func firstExperts(h *Hyper) int {
	return slices.IndexFunc(h.Layers, func(s LayerShape) bool { return s.Experts })
}

// addOuter adds the tensors outside the layers. It sets VocabSize, Tied and, see [binding.addTensors], Positions.
func (b *binding) addOuter() error {
	h, m := b.h, b.m
	embd, _, ok := m.Tensor(TokenEmbd)
	if !ok {
		return fmt.Errorf("bind %s: tensor %q is missing", m.Path, TokenEmbd)
	}
	if len(embd.Shape) != 2 || embd.Shape[0] < 1 || embd.Shape[0] > maxDim {
		return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted (V, %d)", m.Path, TokenEmbd, embd.Shape, h.EmbeddingLength)
	}
	h.VocabSize = int(embd.Shape[0])
	h.Tied = !h.Encoder && !m.Has(Output)
	for _, t := range Tables(h) {
		b.wants(t.Name, nil, h.VocabSize, h.Width(outside, t.Dst))
	}
	b.wants(h.Head(), nil, h.VocabSize, h.EmbeddingLength)
	for _, ops := range [][]Op{h.Input(m.Has), h.Output(m.Has), h.LogitOps(m.Has)} {
		b.addTensors(outside, ops)
	}
	return nil
}

// checkOldConverter refuses files of old converters, which family.old tells by their tensors.
func (b *binding) checkOldConverter() error {
	for name, want := range families[b.h.Architecture].old {
		if name = fmt.Sprintf("blk.0.%s.weight", name); b.m.Has(name) {
			return &UnsupportedError{What: "tensor", Have: name, Want: want}
		}
	}
	return nil
}

// partAlign divides the offset of a part of a tensor that an operation reads: kernels read 16 bytes at a time.
const partAlign = 16

// checkParts refuses operations that read a part of a tensor that begins where kernels can't read it.
func (b *binding) checkParts(ops []Op) error {
	for i := range ops {
		o := &ops[i]
		if err := b.checkParts(o.Ops); err != nil {
			return err
		}
		t, _, ok := b.m.Tensor(o.Weight)
		if !ok || o.Row == 0 || t.Shape[0] == 0 {
			continue
		}
		if off := int64(o.Row) * (t.Bytes / t.Shape[0]); off%partAlign != 0 {
			return &UnsupportedError{What: fmt.Sprintf("tensor %s of rows of %d bytes, read from row %d on,", o.Weight, t.Bytes/t.Shape[0], o.Row), Have: t.Type.String(), Want: fmt.Sprintf("parts from multiples of %d bytes on", partAlign)}
		}
	}
	return nil
}

// checkVocabulary checks that the tokenizer and the key vocab_size, if the file has them, give the same number of tokens as the embedding has rows.
func (b *binding) checkVocabulary() error {
	h, m := b.h, b.m
	const key = "tokenizer.ggml.tokens"
	if tokens, ok := m.Elements(key); ok && tokens.Type == gguf.String && tokens.Len != h.VocabSize {
		return fmt.Errorf("bind %s: key %q: found %d tokens, wanted %d, one for each row of %s", m.Path, key, tokens.Len, h.VocabSize, TokenEmbd)
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
		return fmt.Errorf("bind %s: layer %d: found %d experts, wanted the %d of key %q", b.m.Path, layer, len(units), b.h.Experts.Count, b.h.Architecture+".expert_count")
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

// checkTensor checks that the model has tensor w, with the right shape and a type that kernels take.
func (b *binding) checkTensor(w wantedTensor) error {
	t, _, ok := b.m.Tensor(w.name)
	if !ok {
		return fmt.Errorf("bind %s: tensor %q is missing%s", b.m.Path, w.name, b.unreadBeside(w.name))
	}
	if err := w.check(b.m.Path, t); err != nil {
		return err
	}
	if w.types != nil && !slices.Contains(w.types, t.Type) {
		want := "F32 for norms, biases and convolutions"
		if len(w.types) > 1 {
			want = "F32, F16 and BF16 for embeddings of positions"
		}
		return &UnsupportedError{What: "tensor " + w.name + " of type", Have: t.Type.String(), Want: want}
	}
	return nil
}

// check checks a tensor's shape and type. path names the file in errors.
func (w *wantedTensor) check(path string, t *pack.Tensor) error {
	if !w.fits(t.Shape) {
		return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted %v", path, w.name, t.Shape, w.shape)
	}
	if !quant.Supported(t.Type) {
		return &UnsupportedError{What: "tensor " + w.name + " of type", Have: t.Type.String(), Want: typeNames()}
	}
	return nil
}

// fits reports whether a shape is the wanted one. Of norms, biases and convolutions, lengths of 1 count for nothing.
func (w *wantedTensor) fits(shape []int64) bool {
	if w.types == nil || len(shape) <= len(w.shape) {
		return slices.Equal(shape, w.shape)
	}
	return slices.Equal(withoutOnes(shape), withoutOnes(w.shape))
}

// withoutOnes is the lengths of a shape other than 1.
func withoutOnes(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(n int64) bool { return n == 1 })
}

// typeNames lists the types of weights that kernels take.
func typeNames() string {
	var names []string
	for _, t := range quant.Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
