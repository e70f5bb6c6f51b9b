package shaders

import "leat/gguf"

// Field is a part of a block: Bytes of it, From bytes behind its start.
type Field struct{ From, Bytes int }

// PlanarFields are the fields of a block of type t in the order of their planes: where GGUF has a matrix of blocks one
// after another, the planar layout has that field of all blocks, then the next. Both have as many bytes. nil: t's blocks
// are whole words, and no planar layout exists.
func PlanarFields(t gguf.Type) []Field {
	switch t {
	case gguf.Q4_0, gguf.IQ4_NL:
		return []Field{{2, 16}, {0, 2}} // quants, d
	case gguf.Q5_0:
		return []Field{{6, 16}, {2, 4}, {0, 2}} // quants, fifth bits, d
	case gguf.Q8_0:
		return []Field{{2, 32}, {0, 2}} // quants, d
	case gguf.Q3_K:
		return []Field{{32, 64}, {0, 32}, {96, 12}, {108, 2}} // quants, third bits, scales, d
	case gguf.Q6_K:
		return []Field{{0, 128}, {128, 64}, {192, 16}, {208, 2}} // low bits, upper bits, scales, d
	}
	return nil
}
