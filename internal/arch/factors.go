package arch

import (
	"fmt"
	"math"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/gguf/quant"
)

// markFactors marks the tensors of frequency factors as known if the model has a rope: rope_freqs (Llama 3 and others), or without it the two of LongRoPE.
func (b *binding) markFactors() {
	roped, long := len(b.h.Ropes) > 0, b.m.Has(RopeLong) && b.m.Has(RopeShort) && !b.m.Has(RopeFreqs)
	b.known[RopeFreqs], b.known[RopeLong], b.known[RopeShort] = roped, roped && long, roped && long
}

// readFactors sets Factors and Long of the first rope, shape (Dr/2), if the file has them.
func (b *binding) readFactors() error {
	m := b.m
	if len(b.h.Ropes) == 0 {
		return nil
	}
	r := &b.h.Ropes[0]
	for _, f := range []struct {
		tensor string
		to     *[]float32
	}{{RopeFreqs, &r.Factors}, {RopeShort, &r.Factors}, {RopeLong, &r.Long}} {
		if !b.known[f.tensor] || !m.Has(f.tensor) {
			continue
		}
		factors, err := b.factors(f.tensor)
		if err != nil {
			return err
		}
		*f.to = factors[:r.Dim/2]
	}
	return nil
}

// factors reads a tensor of frequency factors, and checks that they are positive. It has one for each pair of the rope that has most of them.
func (b *binding) factors(name string) ([]float32, error) {
	n := 0
	for i := range b.h.Ropes {
		n = max(n, b.h.Ropes[i].Dim/2)
	}
	t, _, _ := b.m.Tensor(name)
	if t.Type != gguf.F32 || len(t.Shape) != 1 || t.Shape[0] != int64(n) {
		return nil, fmt.Errorf("bind %s: tensor %q: found %s %v, wanted F32 [%d]", b.m.Path, name, t.Type, t.Shape, n)
	}
	factors, err := readValues(b.m, name, n)
	if err != nil {
		return nil, err
	}
	for i, f := range factors {
		if !(f > 0) || math.IsInf(float64(f), 1) {
			return nil, fmt.Errorf("read %s: value %d: found %g, wanted a finite positive number", name, i, f)
		}
	}
	return factors, nil
}

// readValues reads the n values of a tensor of m, for the host. The tensor must be there, and have as many.
func readValues(m *pack.Model, name string, n int) ([]float32, error) {
	t, _, _ := m.Tensor(name)
	raw, values := make([]byte, t.Bytes), make([]float32, n)
	err := m.ReadAt(t.File, raw, t.Off)
	if err == nil {
		err = quant.Decode(t.Type, values, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return values, nil
}
