package pace

import "time"

// ledger turns a duty into rests. Work adds to the rest that is owed; all idle time, whatever its
// cause, takes away from it: waiting for weights cools too.
type ledger struct {
	owed time.Duration // negative: the device was idle for longer than it must
	paid time.Duration // the rest begun last, while ran has not told of it as idle time
}

const (
	leastRest = time.Millisecond // shorter rests cost more in waking up than they cool
	mostOwed  = 4 * MaxRest      // rest owed beyond this is forgotten
	credit    = leastRest * 20   // idle time beyond what was owed is remembered up to this
)

// price is the rest owed for some work.
func price(busy time.Duration, duty float64) time.Duration {
	if duty >= 1 {
		return 0
	}
	return time.Duration(float64(busy) * (1/duty - 1))
}

// ran accounts for work, and for the idle time before it.
func (l *ledger) ran(busy, idle time.Duration, duty float64) {
	l.paid = 0
	l.owed = min(max(l.owed-idle, -credit)+price(busy, duty), mostOwed)
}

// due says whether a rest will be long enough to be worth it, once more work has been done.
func (l *ledger) due(more time.Duration, duty float64) bool {
	return l.owed-l.paid+price(more, duty) >= leastRest
}

// rest is how long to rest now. The rest counts once ran tells of it as idle time, so that
// the next rest is shorter where a timer slept for too long.
func (l *ledger) rest() time.Duration {
	if l.owed < leastRest/2 {
		return 0
	}
	l.paid = min(l.owed, MaxRest)
	return l.paid
}

// longest is how much work a rest of MaxRest is owed for; 0: no rest is needed.
func longest(duty float64) time.Duration {
	if duty >= 1 {
		return 0
	}
	return time.Duration(0.8 * float64(MaxRest) * duty / (1 - duty))
}
