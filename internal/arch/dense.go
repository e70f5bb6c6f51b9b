package arch

import "fmt"

// Dense is a linear layer after pooling, without a bias, which the host computes on the vector of a text, as in EmbeddingGemma. sentence-transformers keeps such modules
// beside the model, and few files have them. It is not a dense FFN.
type Dense struct {
	In, Out int       // width of the vector before and after
	Weights []float32 // (Out, In)

	tensor string // name of the weights' tensor
}

// denseTensors are the names of the tensors of Hyper.Dense, in order.
var denseTensors = []string{"dense_2", "dense_3"}

// maxDense is the most weights of a dense layer. EmbeddingGemma has 768 × 3072.
const maxDense = 1 << 26

// sizeDense sets the sizes of an encoder's dense layers, and marks their tensors as known. It checks the sizes against each other and against keys that give them.
func (b *binding) sizeDense() error {
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
		b.known[t.Name] = true
		if len(t.Shape) != 2 || t.Shape[1] != int64(width) || t.Shape[0] < 1 || t.Shape[0] > maxDense/t.Shape[1] {
			return fmt.Errorf("bind %s: tensor %q: found shape %v, wanted at most %d rows of %d", b.m.Path, t.Name, t.Shape, maxDense/width, width)
		}
		out := int(t.Shape[0])
		for _, c := range []struct {
			key   string
			found int
		}{{name + "_feat_in", width}, {name + "_feat_out", out}} {
			key := b.h.Architecture + "." + c.key
			if n, ok := b.m.Metadata.Int(key); ok && n != int64(c.found) {
				return fmt.Errorf("bind %s: tensor %q: found %d, wanted %d by the key %q", b.m.Path, t.Name, c.found, n, key)
			}
		}
		b.h.Dense = append(b.h.Dense, Dense{In: width, Out: out, tensor: t.Name})
		width = out
	}
	return nil
}

// readDense reads the weights of dense layers.
func (b *binding) readDense() (err error) {
	for i := range b.h.Dense {
		d := &b.h.Dense[i]
		if d.Weights, err = readValues(b.m, d.tensor, d.In*d.Out); err != nil {
			return err
		}
	}
	return nil
}

// Project multiplies v, the pooled vector of a text, shape (D), by the matrices of h.Dense in order, and returns the result, shape (Out) of the last one. It sums in
// float64. Without dense layers it returns v itself.
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
