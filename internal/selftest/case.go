package selftest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"leat/internal/kernels"
	"leat/shaders/ref"
)

// The worst NMSE that rows of the table allow.
const (
	nmseExact   = 0     // the same bits
	nmseLinear  = 1e-10 // sums and products in fp32 come to 1e-14; fp16 rounding anywhere (4e-8) must not pass
	nmseRounded = 1e-5  // bytes: a value in the middle of two may be rounded either way; one of 256 is 2e-6 of a row, and rows may have several
	nmseCurved  = 1e-7  // exp and tanh: Vulkan allows a device a few ulp, growing with the argument
)

// Case is one kernel on one shape.
type Case struct {
	Kernel  string  // the table's row it is about
	Shape   string  // "M=7 K=256 N=3"
	MaxNMSE float64 // 0: the same bits
	build   func(*job) error
}

func (c *Case) String() string { return c.Kernel + "/" + c.Shape }

// Result is what a case that passed has shown.
type Result struct {
	Case *Case
	NMSE float64
	Took time.Duration
}

// job is a case at work: its memory, what to record, and what must come of it.
type job struct {
	*image
	rng    *rand.Rand
	record func(*kernels.Recorder) error
	wants  []want
	twins  [][2]want
	spare  []span // memory that the op may leave anything in
	lacks  uint64 // a table of experts, see topKOf
	spoils bool   // every other row of a random matrix holds NaN or an infinity
}

// want is an output: where it is and what it should be. Rows of bytes, stride apart.
type want struct {
	name  string
	at    span
	mat   ref.Mat // reference values, their stride is the output's
	raw   []byte  // or the very bytes
	power float64 // mean square that such values have; 0: their own

	decode func(got []byte) (ref.Mat, error) // the floats that the device's memory stands for; nil: they lie there
	any    bool                              // another output's decode has looked at it
}

// output says that the buffer at s must become x.
func (j *job) output(name string, s span, x ref.Mat) {
	j.wants = append(j.wants, want{name: name, at: s, mat: x})
}

// sums is output for sums whose terms cancel: their error is measured against the mean square that they should have,
// else a lone sum that happens to be near 0 would be held to a precision that fp32 does not have.
func (j *job) sums(name string, s span, x ref.Mat, power float64) {
	j.wants = append(j.wants, want{name: name, at: s, mat: x, power: power})
}

// exact says that the buffer at s must become b, bit by bit.
func (j *job) exact(name string, s span, b []byte) {
	j.wants = append(j.wants, want{name: name, at: s, raw: b})
}

// same says that two outputs of x's shape must have the same bits.
func (j *job) same(what string, a, b span, x ref.Mat) {
	j.twins = append(j.twins, [2]want{{name: what, at: a, mat: x}, {at: b, mat: x}})
}

// sameBytes says that two outputs must have the same bytes.
func (j *job) sameBytes(what string, a, b span) {
	j.twins = append(j.twins, [2]want{{name: what, at: a, raw: []byte{}}, {at: b, raw: []byte{}}})
}

// seeded returns the random source of a case: of the runner's seed and the case's name, so that it can be run alone.
func (c *Case) seeded(seed uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, c.String())
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// normal is a random matrix, values N(0, 1), with gap values of poison between its rows.
func (j *job) normal(rows, cols, gap int) ref.Mat {
	x := ref.Mat{Data: make([]float32, rows*(cols+gap)), Rows: rows, Cols: cols, Stride: cols + gap}
	for r := range rows {
		for i := range cols {
			x.Row(r)[i] = float32(j.rng.NormFloat64())
		}
	}
	j.spoil(x)
	return x
}

// shape is a zero matrix for the reference to fill.
func shape(rows, cols, gap int) ref.Mat {
	return ref.Mat{Data: make([]float32, rows*(cols+gap)), Rows: rows, Cols: cols, Stride: cols + gap}
}
