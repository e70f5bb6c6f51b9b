package adapt

import (
	"math"
	"time"
)

const (
	severalTimes = 4.0        // what heat and a desktop's own work don't do
	forSteps     = 5          // in a row
	learnSteps   = 8          // until a baseline is trusted
	patience     = 20         // steps that a shrink is given to show an effect
	follow       = 1.0 / 1024 // of a difference, by which a baseline goes after longer contexts
	better       = 0.8        // of the slowness before it, at most, is an effect
	giveShare    = 8          // of our bytes, one part is given back at a time
)

// Drift watches how long work on resident weights takes against its cost.
type Drift struct {
	shapes map[int]*shape // by the logarithm of the rows
	slow   int            // steps in a row
	rest   int            // steps until it looks again
	before float64        // slowness that the last shrink was made for; 0: none
	done   bool           // a shrink changed nothing: the cause is another

	rows       int
	cost, took float64 // of the step under way
}

// shape is what is known of steps of about as many rows.
type shape struct {
	base float64 // seconds a cost
	n    int     // steps seen
}

// NewDrift makes a watch that knows nothing yet.
func NewDrift() *Drift { return &Drift{shapes: map[int]*shape{}} }

// Ran tells of a submission that read resident weights only: the rows of its step, what
// it should cost in any unit, and how long the device was busy with it.
func (d *Drift) Ran(rows int, cost float64, busy time.Duration) {
	if cost > 0 && busy > 0 {
		d.rows, d.cost, d.took = rows, d.cost+cost, d.took+busy.Seconds()
	}
}

// Step ends a step. clock is how much slower than at its fastest the device's sensor
// says that it runs, by heat or otherwise; 1 where nobody knows. It reports how slow
// the device is once bytes should be given back for it, else 0.
func (d *Drift) Step(clock float64) (slowness float64) {
	cost, took := d.cost, d.took
	d.cost, d.took = 0, 0
	if d.done || cost == 0 {
		return 0
	}
	k := int(math.Log2(float64(max(1, d.rows))))
	s := d.shapes[k]
	if s == nil {
		s = &shape{}
		d.shapes[k] = s
	}
	now := took / cost / max(1, clock)
	if s.n < learnSteps {
		s.n++
		if s.base == 0 || now < s.base {
			s.base = now
		}
		return 0
	}
	if now < severalTimes*s.base {
		s.base += (now - s.base) * follow
	}
	if d.rest > 0 {
		d.rest--
		return 0
	}
	if now < severalTimes*s.base {
		d.slow = 0
		return 0
	}
	if d.slow++; d.slow < forSteps {
		return 0
	}
	d.slow = 0
	slowness = now / s.base
	if d.before > 0 && slowness > better*d.before {
		d.done = true
		return 0
	}
	d.before, d.rest = slowness, patience
	return slowness
}

// Share is what to give back of our bytes for one sign of [Drift].
func Share(bytes int64) int64 { return bytes / giveShare }
