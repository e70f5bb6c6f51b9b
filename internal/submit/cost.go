package submit

import "math"

// estimator predicts how long recorded work will run, so that no submission comes
// near the limits after which operating systems reset a GPU (2 s on Windows and
// recent Linux). It starts with the speeds of a weak device, the yardstick, and learns one
// factor: measured time over the yardstick's time, of recent work. Each sample weighs as much
// as it is long, so small ones, mostly overhead, weigh little; a long one that ran longer
// than expected raises the factor to its own.
type estimator struct {
	scale      float64 // measured time over the yardstick's time
	target     float64 // seconds that a submission may run
	pacerLimit float64 // seconds that the pacer lets a submission run; 0: no limit

	measured, based float64 // seconds that recent work ran, and seconds it takes on the yardstick
}

const (
	baseBandwidth = 20e9  // bytes/s of the yardstick device
	baseRate      = 200e9 // flop/s of the yardstick device
	defaultTarget = 0.25  // seconds that a submission may run by default: far below the limits, because estimates err

	costWindow = 0.5  // seconds of work after which a sample's weight has decayed to 1/e
	costKnown  = 0.02 // seconds of work after which the estimator knows the device
	longPart   = 0.25 // fraction of the target from which on a measured time counts as long
	slowest    = 2000 // largest factor taken for real; a larger one means that a kernel was compiled, or other programs ran
)

// base is the number of seconds that work takes on the yardstick device.
func base(bytes, flops float64) float64 { return bytes/baseBandwidth + flops/baseRate }

// rows is how many of n more rows fit into a submission that has bytes and flops already, so that
// it does not run too long: all of them, or a multiple of rowGroup, which may be 0.
func (e *estimator) rows(bytes, flops, flopsPerRow float64, n uint32) uint32 {
	target := e.target
	if e.pacerLimit > 0 {
		target = min(target, e.pacerLimit)
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

// learn updates the factor with work whose time was measured.
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

// known reports whether enough time was measured to trust the estimates.
func (e *estimator) known() bool { return e.measured >= costKnown }

// seconds is the time that work is expected to run.
func (e *estimator) seconds(bytes, flops float64) float64 { return base(bytes, flops) * e.scale }
