package exec

// estimator predicts how long recorded work will run, so that no submission comes
// near the limits after which operating systems reset a GPU (2 s on Windows and
// recent Linux). It starts with the speeds of a weak device and learns one factor.
type estimator struct {
	scale  float64 // measured over predicted time
	target float64 // seconds a submission may run
	most   float64 // seconds the pacer lets it run; 0: it doesn't care
}

// expected is the work of one submission.
type expected struct {
	bytes, flops float64
	unit         int // of the plan, that it ends with
}

const (
	baseBandwidth = 20e9  // bytes/s of the yardstick device
	baseRate      = 200e9 // flop/s
	defaultTarget = 0.25  // seconds, of the half allowed: estimates err
	leastWork     = 1e-5  // seconds of the yardstick: less says nothing
	quick         = 1e-3  // seconds: what neither should nor did take longer is overhead more than work
)

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

// learn takes a measured submission. It follows a slower device quickly and a faster
// one slowly; tiny submissions are all overhead and say nothing: the last one of a step, a
// piece of the head and the choice of a token, once had a quick device's next prompt cut to pieces.
func (e *estimator) learn(w expected, seconds float64) {
	b := base(w.bytes, w.flops)
	if b < leastWork || seconds <= 0 || b < quick && seconds < quick {
		return
	}
	if ratio := seconds / b; ratio > e.scale {
		e.scale += (ratio - e.scale) / 2
	} else {
		e.scale += (ratio - e.scale) / 16
	}
}

// seconds is how long work is expected to run.
func (e *estimator) seconds(bytes, flops float64) float64 { return base(bytes, flops) * e.scale }
