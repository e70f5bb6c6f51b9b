package step

import (
	"fmt"
	"math"
)

// NotFiniteError says that a step computed a logit, or a number of a hidden state, that is NaN or an infinity: the model's weights are broken, or a value left the range of its
// number type. Logits that a mask or a bias sets to minus infinity later do not count.
type NotFiniteError struct {
	Position int   // position of the row that has the logit
	Token    int32 // id in the vocabulary of the first token whose logit is not finite; not the row's own token. Hidden: index in the hidden state
	Hidden   bool  // the number is of a hidden state
}

// Error names the row's position and the vocabulary token.
func (e *NotFiniteError) Error() string {
	if e.Hidden {
		return fmt.Sprintf("compute the hidden state at position %d: value %d is not a finite number", e.Position, e.Token)
	}
	return fmt.Sprintf("compute the logits after position %d: that of token %d is not a finite number", e.Position, e.Token)
}

// Hint names likely causes and what to try.
func (e *NotFiniteError) Hint() string {
	return "the file may be damaged (its checksum tells), or the model's values leave the range of halves: try --disable fp16 and --kv-type f32"
}

// notFinite takes the bits of two float32 in one word, and returns a word with the sign bits set of those that are NaN or an infinity. All bits of their
// exponent are set, so adding one to it carries into the sign. It compares no floats, because comparisons with NaN are false.
func notFinite(two uint64) uint64 {
	const magnitude, one, sign = 0x7fffffff_7fffffff, 0x00800000_00800000, 0x80000000_80000000
	return (two&magnitude + one) & sign
}

// decodeFloats decodes little-endian float32 from m to x and reports whether all are finite. It does both in one pass, because it reads the logits of
// each step.
func decodeFloats(x []float32, m []byte) bool {
	var seen uint64
	n := len(x) &^ 1
	m = m[:4*len(x)]
	for i := 0; i < n; i += 2 {
		two := le.Uint64(m[4*i:])
		seen |= notFinite(two)
		x[i], x[i+1] = float32frombits(uint32(two)), float32frombits(uint32(two>>32))
	}
	if n < len(x) {
		one := le.Uint32(m[4*n:])
		seen |= notFinite(uint64(one))
		x[n] = float32frombits(one)
	}
	return seen == 0
}

// firstNotFinite is the index of the first NaN or infinity in x; len(x): none.
func firstNotFinite(x []float32) int {
	for i, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return i
		}
	}
	return len(x)
}
