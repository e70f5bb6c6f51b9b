package arch

import (
	"fmt"
	"slices"

	"leat/gguf"
)

// readPositions sets Positions to the number of rows of the tensors that [AddRows] among ops reads by position, and lowers ContextLength to it. It refuses
// tensors of a type that the kernel can't read.
func (b *binding) readPositions(ops []Op) error {
	for i := range ops {
		t, _, ok := b.m.Tensor(ops[i].Weight)
		if ops[i].Kind != AddRows || !ok || len(t.Shape) != 2 {
			continue // a tensor that is missing, or of another shape, is an error of checkTensor
		}
		if !slices.Contains([]gguf.Type{gguf.F32, gguf.F16, gguf.BF16}, t.Type) {
			return &UnsupportedError{What: fmt.Sprintf("tensor %s of type", t.Name), Have: t.Type.String(), Want: "F32, F16 or BF16 for learned positions"}
		}
		if n := int(min(t.Shape[0], maxDim)); b.h.Positions == 0 || n < b.h.Positions {
			b.h.Positions = n
		}
		b.h.ContextLength = min(b.h.ContextLength, b.h.Positions)
	}
	return nil
}
