package arch

import (
	"fmt"

	"leat/gguf/quant"
)

// Dense is a product that the vector of a text passes through after pooling, as in EmbeddingGemma: sentence-transformers keeps such modules beside the model, and few
// files have them.
type Dense struct {
	In, Out int
	Weights []float32 // shape (Out, In)
}

// denseTensors are the names of the tensors of Hyper.Dense, in turn.
var denseTensors = []string{"dense_2", "dense_3"}

// maxDense is the most values of a dense layer: of EmbeddingGemma they have 768 × 3072.
const maxDense = 1 << 26

// takeDense counts the tensors of dense layers as read, of an encoder, and checks their sizes against each other and against the keys that files have of them.
func (b *binding) takeDense() error {
	width := b.h.EmbeddingLength
	for _, name := range denseTensors {
		t, _, ok := b.m.Tensor(name + ".weight")
		key := b.h.Architecture + "." + name + "_feat_out"
		if n, counted := b.m.Metadata.Int(key); !ok && counted && n > 0 && b.h.Encoder {
			return fmt.Errorf("bind %s: tensor %q is missing, which has %d rows by the key %q", b.m.Path, name+".weight", n, key)
		}
		if !ok || !b.h.Encoder {
			continue
		}
		b.read[t.Name] = true
		if len(t.Shape) != 2 || t.Shape[1] != int64(width) || t.Shape[0] < 1 || t.Shape[0] > maxDense/t.Shape[1] {
			return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted at most %d rows of %d", b.m.Path, t.Name, t.Shape, maxDense/width, width)
		}
		out := int(t.Shape[0])
		for key, found := range map[string]int{name + "_feat_in": width, name + "_feat_out": out} {
			key = b.h.Architecture + "." + key
			if n, ok := b.m.Metadata.Int(key); ok && n != int64(found) {
				return fmt.Errorf("bind %s: tensor %q: found %d, wanted %d by the key %q", b.m.Path, t.Name, found, n, key)
			}
		}
		b.h.Dense = append(b.h.Dense, Dense{In: width, Out: out})
		width = out
	}
	return nil
}

// readDense reads the weights of dense layers.
func (b *binding) readDense() error {
	next := 0
	for _, name := range denseTensors {
		if !b.read[name+".weight"] {
			continue
		}
		t, _, _ := b.m.Tensor(name + ".weight")
		d := &b.h.Dense[next]
		raw := make([]byte, t.Bytes)
		d.Weights = make([]float32, d.In*d.Out)
		err := b.m.ReadAt(t.File, raw, t.Off)
		if err == nil {
			err = quant.Decode(t.Type, d.Weights, raw)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", t.Name, err)
		}
		next++
	}
	return nil
}

// Project passes the vector of a text, shape (EmbeddingLength), through the dense layers, and returns the last one's output; sums are of float64. Without such layers it
// is v itself.
func (h *Hyper) Project(v []float32) []float32 {
	for i := range h.Dense {
		d := &h.Dense[i]
		out := make([]float32, d.Out)
		for r := range out {
			sum := 0.0
			for c, w := range d.Weights[r*d.In : (r+1)*d.In] {
				sum += float64(w) * float64(v[c])
			}
			out[r] = float32(sum)
		}
		v = out
	}
	return v
}
