package arch

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
)

// readFactors sets Factors of the first rope to the frequency factors of Llama 3 and others, shape (Dr/2), if the file has them, and checks that they are
// positive.
func (b *binding) readFactors() error {
	h, m := b.h, b.m
	t, _, ok := m.Tensor(RopeFreqs)
	if !ok || len(h.Ropes) == 0 {
		return nil
	}
	r := &h.Ropes[0]
	n := r.Dim / 2
	if t.Type != gguf.F32 || len(t.Shape) != 1 || t.Shape[0] != int64(n) {
		return fmt.Errorf("bind %s: tensor %q: found %s %v, wanted F32 [%d]", m.Path, RopeFreqs, t.Type, t.Shape, n)
	}
	raw := make([]byte, t.Bytes)
	if err := m.ReadAt(t.File, raw, t.Off); err != nil {
		return fmt.Errorf("read %s: %w", RopeFreqs, err)
	}
	r.Factors = make([]float32, n)
	if err := quant.Decode(gguf.F32, r.Factors, raw); err != nil {
		return fmt.Errorf("read %s: %w", RopeFreqs, err)
	}
	for i, f := range r.Factors {
		if !(f > 0) || math.IsInf(float64(f), 1) {
			return fmt.Errorf("read %s: value %d: found %g, wanted a finite positive number", RopeFreqs, i, f)
		}
	}
	return nil
}
