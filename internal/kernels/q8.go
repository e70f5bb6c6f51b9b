package kernels

import (
	"leat/shaders"
)

// q8Block is the number of values that share a scale.
const q8Block = 32

// q8Bytes is the memory of rows x cols int8 values at an address.
func q8Bytes(at uint64, rows, cols uint32) span { return span{at, at + uint64(rows)*uint64(cols)} }

// q8Scales is the memory, at an address, of the scales and sums of the blocks of rows x cols int8 values.
func q8Scales(at uint64, rows, cols uint32) span { return span{at, at + uint64(rows)*uint64(cols)/4} }

// q8 describes rows of float32 that one half of [Memory.Q8] holds as int8.
type q8 struct {
	valid   bool   // the int8 values are valid
	x       span   // the float32 rows
	n, k, s uint32 // their rows, columns and stride
	q, sums uint64 // addresses of the int8 values, and of their scales and sums
}

// Quantised says which float32 rows the two halves of [Memory.Q8] hold as int8.
type Quantised struct {
	q8   [2]q8 // contents of each half
	last int   // index of the half written last
}

// Quantised says which rows [Memory.Q8] holds as int8 after all ops that r has recorded.
func (r *Recorder) Quantised() Quantised {
	b := Quantised{last: r.quantised.last}
	for i := range r.quantised.q8 {
		if r.quantised.q8[i].valid {
			b.q8[i] = r.quantised.q8[i]
		}
	}
	return b
}

// Common is what b and c have in common: the rows that both hold in the same half.
func (b Quantised) Common(c Quantised) Quantised {
	for i := range b.q8 {
		if b.q8[i] != c.q8[i] {
			b.q8[i] = q8{}
		}
	}
	return b
}

// q8Room is the size of a half of [Memory.Q8]. There are two halves, so that an op can read int8 rows from one and write the other.
func (r *Recorder) q8Room() int64 { return r.Memory.Q8.Bytes / 2 &^ 15 }

// q8Slot chooses the half of [Memory.Q8] to which an op writes the rows at x as int8; nil: they don't fit. It is the half that was not written last, unless
// that one has the address reads, which the op still reads. The caller sets valid once the op is recorded.
func (r *Recorder) q8Slot(x uint64, n, k, stride uint32, reads uint64) *q8 {
	room := r.q8Room()
	if n == 0 || k == 0 || k%q8Block != 0 || shaders.Q8Size(n, k) > room {
		return nil
	}
	i := 1 - r.quantised.last
	if at := r.Memory.Q8.Address + uint64(i)*uint64(room); reads >= at && reads < at+uint64(room) { // reads may be any row in the half
		i = r.quantised.last
	}
	at := r.Memory.Q8.Address + uint64(i)*uint64(room)
	r.quantised.last = i
	r.quantised.q8[i] = q8{x: f32s(x, n, k, stride), q: at, sums: shaders.Q8Sums(at, n, k), n: n, k: k, s: stride}
	return &r.quantised.q8[i]
}

// holds reports whether b has all of the n float32 rows of k values at address x as int8.
func (b *q8) holds(x uint64, n, k, stride uint32) bool {
	if !b.valid || b.k != k || b.s != stride || x < b.x.lo {
		return false
	}
	row := 4 * uint64(max(1, stride))
	from := (x - b.x.lo) / row
	return (x-b.x.lo)%row == 0 && from+uint64(n) <= uint64(b.n)
}

// int8X returns the addresses of X as int8 and of its scales and sums. It records a quantize_q8 unless [Memory.Q8] holds X already.
func (r *Recorder) int8X(x uint64, n, k, stride uint32) (q, sums uint64, err error) {
	for i := range r.quantised.q8 {
		if b := &r.quantised.q8[i]; b.holds(x, n, k, stride) {
			from := (x - b.x.lo) / 4 / uint64(max(1, stride))
			return b.q + from*uint64(k), b.sums + from*uint64(k)/4, nil
		}
	}
	to := r.q8Slot(x, n, k, stride, 0)
	if to == nil {
		return 0, 0, &ArgError{"quantize_q8", "Q8", r.Memory.Q8.Bytes, "twice the Q8Size of X"}
	}
	if err := QuantizeQ8(r, shaders.QuantizeQ8Args{X: x, Q: to.q, S: to.sums, Rows: n, Cols: k, XStride: stride}); err != nil {
		return 0, 0, err
	}
	to.valid = true
	return to.q, to.sums, nil
}

// forgetQuantised drops int8 rows whose float32 rows t overwrites.
func (r *Recorder) forgetQuantised(t *touch) {
	for i := range r.quantised.q8 {
		if b := &r.quantised.q8[i]; b.valid && anyOverlap([]span{b.x}, t.writes[:t.nw]) {
			b.valid = false
		}
	}
}

// QuantizeQ8 quantises X (Rows, Cols) to int8, in blocks of 32 values with a scale and a sum each: values to Q, scales and sums to S.
func QuantizeQ8(r *Recorder, a shaders.QuantizeQ8Args) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "quantize_q8"}}
	c.floats("X", a.X, a.XStride)
	c.address("Q", a.Q)
	c.address("S", a.S)
	c.multiple("Cols", a.Cols, q8Block)
	c.stride("XStride", a.XStride, a.Cols)
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.write(q8Bytes(a.Q, a.Rows, a.Cols))
	t.write(q8Scales(a.S, a.Rows, a.Cols))
	return record(r, &c, &a, a.Workgroups(), &t, cost{5.25 * n, 4 * n})
}
