package predict

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// LayerClass is a set of a model's layers that take the same time, see [LayerClasses]. Rehearsals run its first layer in place of all.
type LayerClass struct {
	Class   string      // hash of the layers' tensors and windows, see classOf
	First   *pack.Unit  // the first layer, without its experts
	Experts []pack.Unit // the first layer's experts
	Count   int         // number of layers in the class
}

// Tensors lists the tensors of the first layer, with those of one of its experts in place of all.
func (l *LayerClass) Tensors() []pack.Tensor {
	if len(l.Experts) == 0 {
		return l.First.Tensors
	}
	return slices.Concat(l.First.Tensors, l.Experts[0].Tensors)
}

// Bytes is the size of the first layer's weights, all its experts included.
func (l *LayerClass) Bytes() (n int64) {
	for i := range l.Experts {
		n += l.Experts[i].Bytes
	}
	return n + l.First.Bytes
}

// AsLayer lists copies of the first layer's units, renamed to be layer n.
func (l *LayerClass) AsLayer(n int) []pack.Unit {
	units := []pack.Unit{l.First.AsLayer(n)}
	for i := range l.Experts {
		units = append(units, l.Experts[i].AsLayer(n))
	}
	return units
}

// LayerClasses groups a model's layers by the types and shapes of their tensors and by what [arch.LayerShape] says of them. The class with the most
// layers comes first. Layers of one class take the same time.
func LayerClasses(h *arch.Hyper, m *pack.Model) (classes []LayerClass) {
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Layer || u.Layer >= h.BlockCount {
			continue
		}
		layer := LayerClass{First: u, Experts: m.Experts(u.Layer)}
		class := classOf(h, u.Layer, layer.Tensors())
		at := slices.IndexFunc(classes, func(l LayerClass) bool { return l.Class == class })
		if at < 0 {
			at = len(classes)
			layer.Class = class
			classes = append(classes, layer)
		}
		classes[at].Count++
	}
	slices.SortStableFunc(classes, func(a, b LayerClass) int { return b.Count - a.Count })
	return classes
}

// classOf is the class of layer l: a hash of the names, types and shapes of its tensors, and of the layer's shape. tensors has those of one expert in place
// of all.
func classOf(h *arch.Hyper, l int, tensors []pack.Tensor) string {
	f := fnv.New64a()
	fmt.Fprintln(f, h.Layers[l])
	for _, t := range tensors {
		_, name, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		fmt.Fprintln(f, name, t.Type, t.Shape)
	}
	return fmt.Sprintf("%016x", f.Sum64())
}

// RehearsalKey identifies the models that one [Rehearsal], a timed run of a few layers, is valid for. It is a hash of the hyperparameters and
// tensor shapes that a layer's time depends on: models with the same key take the same time for each layer. Rehearsals are kept on disk under their key.
func RehearsalKey(h *arch.Hyper, m *pack.Model, kvType gguf.Type) string {
	f := fnv.New64a()
	var classes []string
	for _, c := range LayerClasses(h, m) {
		classes = append(classes, c.Class)
	}
	slices.Sort(classes)
	fmt.Fprintln(f, classes)
	fmt.Fprintln(f, h.Masks, h.Delta, h.Latent, h.Mamba)
	for i := range h.Ropes {
		fmt.Fprintln(f, h.Ropes[i].Dim)
	}
	fmt.Fprintln(f, h.Architecture, h.EmbeddingLength, h.VocabSize, kvType, h.Experts.Count, h.Experts.Used)
	for _, name := range []string{arch.TokenEmbd, h.Head()} {
		if t, _, ok := m.Tensor(name); ok {
			fmt.Fprintln(f, t.Type, t.Shape)
		}
	}
	return fmt.Sprintf("%016x", f.Sum64())
}
