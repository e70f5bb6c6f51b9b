package pace

import "time"

// ledger turns a duty into rests. Work adds what must be rested for it; every idle
// moment, whatever its cause, pays: waiting for weights is rest too.
type ledger struct {
	owed time.Duration
	paid time.Duration // rested, but not yet seen as idle time
}

const (
	leastRest = time.Millisecond // shorter ones cost more in waking up than they cool
	mostOwed  = 4 * MaxRest      // a debt that can't be paid is forgotten
	credit    = leastRest * 20   // and so is idleness long past
)

// price is what a time of work costs in rest.
func price(busy time.Duration, duty float64) time.Duration {
	if duty >= 1 {
		return 0
	}
	return time.Duration(float64(busy) * (1/duty - 1))
}

func (l *ledger) ran(busy, idle time.Duration, duty float64) {
	l.paid = 0
	l.owed = min(max(l.owed-idle, -credit)+price(busy, duty), mostOwed)
}

// due says whether, with more work done, a rest would be worth its while.
func (l *ledger) due(more time.Duration, duty float64) bool {
	return l.owed-l.paid+price(more, duty) >= leastRest
}

// rest is how long to rest now. It is paid only when ran tells of the idle time, so that
// a timer that sleeps long is made good by the next rest.
func (l *ledger) rest() time.Duration {
	if l.owed < leastRest/2 {
		return 0
	}
	l.paid = min(l.owed, MaxRest)
	return l.paid
}

// longest is the work that one longest rest makes good.
func longest(duty float64) time.Duration {
	if duty >= 1 {
		return 0
	}
	return time.Duration(0.8 * float64(MaxRest) * duty / (1 - duty))
}
