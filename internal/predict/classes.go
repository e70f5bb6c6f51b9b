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

// LayerClass is a part of a step: all layers of a class.
type LayerClass struct {
	Class   string
	First   *pack.Unit  // in the model
	Experts []pack.Unit // of that layer
	Count   int
}

// Tensors are the layer's, and one expert's, who stands for all.
func (l *LayerClass) Tensors() []pack.Tensor {
	if len(l.Experts) == 0 {
		return l.First.Tensors
	}
	return slices.Concat(l.First.Tensors, l.Experts[0].Tensors)
}

// Bytes are those of the layer's weights.
func (l *LayerClass) Bytes() (n int64) {
	for i := range l.Experts {
		n += l.Experts[i].Bytes
	}
	return n + l.First.Bytes
}

// As lists the layer's units under another layer's number.
func (l *LayerClass) As(n int) []pack.Unit {
	units := []pack.Unit{l.First.AsLayer(n)}
	for i := range l.Experts {
		units = append(units, l.Experts[i].AsLayer(n))
	}
	return units
}

// LayerClasses groups a model's layers by the types and shapes of their tensors and by what else
// they work as, the most frequent class first. Layers of one class take the same time.
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

// classOf is the class of layer l, one expert of which stands for all. Its tensors tell how it
// works, but not how far it sees.
func classOf(h *arch.Hyper, l int, tensors []pack.Tensor) string {
	f := fnv.New64a()
	if h.Windowed(l) {
		fmt.Fprintln(f, "window")
	}
	for _, t := range tensors {
		_, name, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		fmt.Fprintln(f, name, t.Type, t.Shape)
	}
	return fmt.Sprintf("%016x", f.Sum64())
}

// RehearsalKey names all that a rehearsal depends on, but for the machine: two models with the
// same one run at the same speed, layer for layer.
func RehearsalKey(h *arch.Hyper, m *pack.Model, kvType gguf.Type) string {
	f := fnv.New64a()
	var classes []string
	for _, c := range LayerClasses(h, m) {
		classes = append(classes, c.Class)
	}
	slices.Sort(classes)
	fmt.Fprintln(f, classes)
	fmt.Fprintln(f, h.Window, h.Net, h.Latent)
	fmt.Fprintln(f, h.Architecture, h.EmbeddingLength, h.FeedForwardLength, h.HeadCount, h.HeadCountKV, h.KeyLength, h.ValueLength, h.VocabSize, h.Rope.Dim, kvType, h.Experts.Count, h.Experts.Used)
	for _, name := range []string{arch.TokenEmbd, h.Head()} {
		if t, _, ok := m.Tensor(name); ok {
			fmt.Fprintln(f, t.Type, t.Shape)
		}
	}
	return fmt.Sprintf("%016x", f.Sum64())
}
