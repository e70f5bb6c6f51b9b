package submit

import "math"

// estimator predicts how long recorded work will run, so that no submission comes
// near the limits after which operating systems reset a GPU (2 s on Windows and
// recent Linux). It starts with the speeds of a weak device and learns one factor: the
// time over the work of late. A small submission, most of which is starting and waiting,
// weighs as little as it is long; a long one that ran longer than expected counts alone.
type estimator struct {
	scale  float64 // measured over predicted time
	target float64 // seconds a submission may run
	most   float64 // seconds the pacer lets it run; 0: it doesn't care

	measured, based float64 // seconds that the work of late ran, and would have on the yardstick
}

const (
	baseBandwidth = 20e9  // bytes/s of the yardstick device
	baseRate      = 200e9 // flop/s
	defaultTarget = 0.25  // seconds, of the half allowed: estimates err

	costWindow = 0.5  // seconds of work that are remembered
	costKnown  = 0.02 // seconds of work after which the estimator knows the device
	longPart   = 0.25 // of the target: from there on a submission is long
	slowest    = 2000 // times the yardstick's time that any device takes; more is a compiler at work, or other programs
)

// base is how many seconds work takes on the yardstick device.
func base(bytes, flops float64) float64 { return bytes/baseBandwidth + flops/baseRate }

// rows says how many more rows of work fit into the submission, up to n: all of them,
// or a multiple of rowGroup.
func (e *estimator) rows(bytes, flops, flopsPerRow float64, n uint32) uint32 {
	target := e.target
	if e.most > 0 {
		target = min(target, e.most)
	}
	left := target/e.scale - base(bytes, flops)
	if left <= 0 {
		return 0
	}
	fit := left / base(0, flopsPerRow)
	if fit >= float64(n) {
		return n
	}
	return uint32(fit) / rowGroup * rowGroup
}

// learn takes a measured submission.
func (e *estimator) learn(bytes, flops, seconds float64) {
	b := base(bytes, flops)
	if b <= 0 || seconds <= 0 {
		return
	}
	seconds = min(seconds, slowest*b)
	keep := math.Exp(-seconds / costWindow)
	e.measured, e.based = e.measured*keep+seconds, e.based*keep+b
	if seconds > longPart*e.target {
		e.measured = max(e.measured, seconds/b*e.based)
	}
	e.scale = e.measured / e.based
}

// known reports whether enough was measured for estimates to be worth something.
func (e *estimator) known() bool { return e.measured >= costKnown }

// seconds is how long work is expected to run.
func (e *estimator) seconds(bytes, flops float64) float64 { return base(bytes, flops) * e.scale }
