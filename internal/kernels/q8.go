package kernels

import (
	"leat/shaders"
)

// q8Block is the number of values that share a scale.
const q8Block = 32

func q8Bytes(at uint64, rows, cols uint32) span { return span{at, at + uint64(rows)*uint64(cols)} }

func q8Scales(at uint64, rows, cols uint32) span { return span{at, at + uint64(rows)*uint64(cols)/4} }

// q8 is an X that the recorder has as bytes too: where it stands, and the bytes.
type q8 struct {
	there   bool
	x       span
	n, k, s uint32
	q, sums uint64
}

// Brought is what a recorder knows to be in memory as bytes.
type Brought struct {
	q8   [2]q8
	last int // the one made last
}

// Brought is what is there behind all that r recorded.
func (r *Recorder) Brought() Brought {
	b := Brought{last: r.brought.last}
	for i := range r.brought.q8 {
		if r.brought.q8[i].there {
			b.q8[i] = r.brought.q8[i]
		}
	}
	return b
}

// Both is what is there in b and in c.
func (b Brought) Both(c Brought) Brought {
	for i := range b.q8 {
		if b.q8[i] != c.q8[i] {
			b.q8[i] = q8{}
		}
	}
	return b
}

// q8Room is the size of one of the two places for bytes. There are two, so that an op can read one and write the other.
func (r *Recorder) q8Room() int64 { return r.Q8.Bytes / 2 &^ 15 }

// q8Slot is the place where an op may leave its output as bytes; nil: there is no room. It is not the one that holds
// the bytes at `reads`, or those made last. It is there once the op
// has been recorded.
func (r *Recorder) q8Slot(x uint64, n, k, stride uint32, reads uint64) *q8 {
	room := r.q8Room()
	if n == 0 || k == 0 || k%q8Block != 0 || shaders.Q8Size(n, k) > room {
		return nil
	}
	i := 1 - r.brought.last
	if at := r.Q8.Address + uint64(i)*uint64(room); reads >= at && reads < at+uint64(room) { // some rows of what is there
		i = r.brought.last
	}
	at := r.Q8.Address + uint64(i)*uint64(room)
	r.brought.last = i
	r.brought.q8[i] = q8{x: f32s(x, n, k, stride), q: at, sums: shaders.Q8Sums(at, n, k), n: n, k: k, s: stride}
	return &r.brought.q8[i]
}

// holds reports whether rows at x are, whole, among those that are here.
func (b *q8) holds(x uint64, n, k, stride uint32) bool {
	if !b.there || b.k != k || b.s != stride || x < b.x.lo {
		return false
	}
	row := 4 * uint64(max(1, stride))
	from := (x - b.x.lo) / row
	return (x-b.x.lo)%row == 0 && from+uint64(n) <= uint64(b.n)
}

// bytesOf returns where X is as bytes, and brings it there unless it is.
func (r *Recorder) bytesOf(x uint64, n, k, stride uint32) (q, sums uint64, err error) {
	for i := range r.brought.q8 {
		if b := &r.brought.q8[i]; b.holds(x, n, k, stride) {
			from := (x - b.x.lo) / 4 / uint64(max(1, stride))
			return b.q + from*uint64(k), b.sums + from*uint64(k)/4, nil
		}
	}
	to := r.q8Slot(x, n, k, stride, 0)
	if to == nil {
		return 0, 0, &ArgError{"quantize_q8", "Q8", r.Q8.Bytes, "twice the Q8Size of X"}
	}
	if err := QuantizeQ8(r, shaders.QuantizeQ8Args{X: x, Q: to.q, S: to.sums, Rows: n, Cols: k, XStride: stride}); err != nil {
		return 0, 0, err
	}
	to.there = true
	return to.q, to.sums, nil
}

// forget drops the bytes of an X that t writes.
func (r *Recorder) forget(t *touch) {
	for i := range r.brought.q8 {
		if b := &r.brought.q8[i]; b.there && meet([]span{b.x}, t.writes[:t.nw]) {
			b.there = false
		}
	}
}

// QuantizeQ8 turns X (Rows, Cols) into blocks of 32 bytes Q with their scales and sums S.
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
