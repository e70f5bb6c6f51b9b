package truth

import (
	"fmt"

	"leat/gguf"
	"leat/gguf/quant"
)

// Model is a GGUF file, its weights dequantised.
type Model struct {
	md      *gguf.Metadata
	arch    string
	tensors map[string]*tensor
	layer   func(s *Session, l int, x []float64) // of this architecture

	layers, vocab, dim int
	eps                float64
	rope               rope
}

// tensor holds the values of a weight, shape outermost first.
type tensor struct {
	shape  []int
	values []float32
}

// fault is what a forward pass panics with inside this package; it leaves as an error.
type fault struct{ error }

func fail(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

// caught turns a fault into an error.
func caught(err *error) {
	if r := recover(); r != nil {
		f, ok := r.(fault)
		if !ok {
			panic(r)
		}
		*err = f.error
	}
}

// Open reads all of a model.
func Open(path string) (m *Model, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer caught(&err)
	m = &Model{md: f.Metadata, arch: f.Metadata.Architecture(), tensors: map[string]*tensor{}}
	for i := range f.Tensors {
		info := &f.Tensors[i]
		raw, err := f.ReadTensor(info)
		if err != nil {
			return nil, err
		}
		t := &tensor{}
		n := 1
		for _, d := range info.Shape {
			t.shape = append(t.shape, int(d))
			n *= int(d)
		}
		t.values = make([]float32, n)
		if err := quant.Decode(info.Type, t.values, raw); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", info.Name, err)
		}
		m.tensors[info.Name] = t
	}
	var ok bool
	if m.layer, ok = architectures[m.arch]; !ok {
		return nil, fmt.Errorf("open %s: architecture %q is not known", path, m.arch)
	}
	m.layers = m.int("block_count") - m.intOr("nextn_predict_layers", 0)
	m.vocab, m.dim = m.tensor("token_embd.weight").shape[0], m.int("embedding_length")
	m.eps = m.float("attention.layer_norm_rms_epsilon", 1e-5)
	m.readRope()
	return m, nil
}

// Vocab is the number of logits of a row.
func (m *Model) Vocab() int { return m.vocab }

func (m *Model) has(name string) bool { return m.tensors[name] != nil }

func (m *Model) tensor(name string) *tensor {
	t := m.tensors[name]
	if t == nil {
		fail("tensor %q is missing", name)
	}
	return t
}

// vector is a tensor of one dimension, nil if it is missing.
func (m *Model) vector(name string) []float32 {
	if !m.has(name) {
		return nil
	}
	return m.tensors[name].values
}

// part is the i'th of a stack of matrices.
func (t *tensor) part(i int) *tensor {
	n := len(t.values) / t.shape[0]
	return &tensor{t.shape[1:], t.values[i*n : (i+1)*n]}
}

func (m *Model) int(key string) int {
	v, ok := m.md.Int(m.arch + "." + key)
	if !ok {
		fail("key %q is missing", m.arch+"."+key)
	}
	return int(v)
}

func (m *Model) intOr(key string, other int) int {
	if _, ok := m.md.Get(m.arch + "." + key); !ok {
		return other
	}
	return m.int(key)
}

func (m *Model) float(key string, other float64) float64 {
	if v, ok := m.md.Float(m.arch + "." + key); ok {
		return v
	}
	return other
}

func (m *Model) bool(key string, other bool) bool {
	if v, ok := m.md.Bool(m.arch + "." + key); ok {
		return v
	}
	return other
}
