package selftest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"leat/internal/kernels"
	"leat/shaders/ref"
)

// The largest NMSE (see the package's comment) that cases allow.
const (
	nmseExact   = 0     // for results with the same bits as the reference
	nmseLinear  = 1e-10 // for sums and products: in fp32 they come to 1e-14, and rounding to fp16 anywhere (4e-8) must not pass
	nmseFine    = 1e-12 // for functions of fine_math.glsl: a value is off by 1e-6 of itself at most
	nmseRounded = 1e-5  // for int8: a value halfway between two may be rounded either way; one such value is 2e-6 of a row of 256, and a row may have several
	nmseCurved  = 1e-7  // for exp and tanh: Vulkan allows errors of a few ulp, which grow with the argument
)

// Case is a test of one kernel with one shape.
type Case struct {
	Kernel  string           // name of the kernel's row in the shaders' table
	Shape   string           // describes sizes and options, such as "M=7 K=256 N=3"
	MaxNMSE float64          // largest NMSE allowed; 0: the bits must be the same
	build   func(*job) error // fills the job's memory, and sets its record function and wanted outputs
}

// String is the case's name.
func (c *Case) String() string { return c.Kernel + "/" + c.Shape }

// Result is the result of a case that passed.
type Result struct {
	Case *Case         // the case
	NMSE float64       // largest NMSE of its outputs
	Took time.Duration // time that the case took
}

// job is a case that is being run: its memory, the function that records its ops, and the outputs that it must have.
type job struct {
	*image
	rng    *rand.Rand                    // random source of the case
	record func(*kernels.Recorder) error // records the case's ops
	wants  []want                        // outputs, and their wanted values
	twins  [][2]want                     // pairs of outputs that must have the same bits
	spare  []span                        // memory that the ops may change, and that is not compared
	lacks  uint64                        // address of a table of experts that lacks a chosen one, see topKArgsOf
	grids  uint64                        // address of the grids of weights; 0: no weights of the case have a grid
	spoils bool                          // every other row of a random matrix gets a NaN or an infinity
}

// want is an output of a case: where it is in the case's memory, and the wanted values, as floats (mat) or as bytes (raw).
type want struct {
	name  string  // name of the output, for errors
	at    span    // the output's memory
	mat   ref.Mat // values of the reference; rows of the output have the same stride
	raw   []byte  // not nil: the wanted bytes, instead of mat
	power float64 // mean square of values of this kind, against which errors are measured; 0: that of mat

	decode func(got []byte) (ref.Mat, error) // computes the output's floats from the memory after the run; nil: the memory at at has the floats
	any    bool                              // not compared, because the decode function of another output checks it
}

// output adds a wanted output: the buffer at s must become x.
func (j *job) output(name string, s span, x ref.Mat) {
	j.wants = append(j.wants, want{name: name, at: s, mat: x})
}

// sums is [job.output] for sums whose terms cancel. Their error is measured against power, the mean square that such sums have: measured against its own
// value, a single sum that happens to be near 0 would need a precision that fp32 does not have.
func (j *job) sums(name string, s span, x ref.Mat, power float64) {
	j.wants = append(j.wants, want{name: name, at: s, mat: x, power: power})
}

// exact adds a wanted output: the buffer at s must become b, bit by bit.
func (j *job) exact(name string, s span, b []byte) {
	j.wants = append(j.wants, want{name: name, at: s, raw: b})
}

// same adds two outputs, at a and b, that must have the same bits. Both have x's shape.
func (j *job) same(what string, a, b span, x ref.Mat) {
	j.twins = append(j.twins, [2]want{{name: what, at: a, mat: x}, {at: b, mat: x}})
}

// sameBytes adds two outputs, at a and b, that must have the same bytes.
func (j *job) sameBytes(what string, a, b span) {
	j.twins = append(j.twins, [2]want{{name: what, at: a, raw: []byte{}}, {at: b, raw: []byte{}}})
}

// seeded returns the random source of a case. It depends only on the runner's seed and the case's name, so a case run alone gets the same values.
func (c *Case) seeded(seed uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, c.String())
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// normal makes a random matrix of N(0, 1) values. gap is the number of values between rows.
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
