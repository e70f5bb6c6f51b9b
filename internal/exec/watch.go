package exec

import (
	"fmt"
	"sync/atomic"
	"time"

	"leat/internal/trace"
)

// Counters are what an Exec has done since it was made.
type Counters struct {
	Steps, Rows, Submissions int64
	WeightBytes              int64         // of the units that kernels read
	Compute                  time.Duration // a submission ran; an estimate where the device has no timestamps
	Stalled                  time.Duration // none did, within a step, because weights had not come
	Record                   time.Duration // the host recorded and submitted
}

// counters are Counters that are counted by one goroutine and read by others.
type counters struct {
	steps, rows, submissions, weights atomic.Int64
	compute, stalled, record          atomic.Int64 // ns
}

// Counters may be called by any goroutine.
func (e *Exec) Counters() Counters {
	c := &e.count
	return Counters{
		Steps: c.steps.Load(), Rows: c.rows.Load(), Submissions: c.submissions.Load(), WeightBytes: c.weights.Load(),
		Compute: time.Duration(c.compute.Load()), Stalled: time.Duration(c.stalled.Load()), Record: time.Duration(c.record.Load()),
	}
}

// resume begins a stretch of recording, pause ends it: the host is about to wait.
func (r *run) resume() { r.since = time.Now() }

func (r *run) pause() {
	now := time.Now()
	r.e.count.record.Add(int64(now.Sub(r.since)))
	if r.e.Trace != nil {
		r.e.Trace.Add(trace.Span{Lane: trace.Host, Name: r.e.holds(r.at, r.at), Step: r.step}, r.since, now)
	}
}

// nothing is the unit of work that reads no weights: a step's beginning and end.
const nothing = -1

// holds names work on units from to last of the plan.
func (e *Exec) holds(from, last int) string {
	switch units := e.Plan.Units; {
	case from == nothing:
		return "inputs"
	case from == last:
		return units[last].Name
	default:
		name, ok := e.names[[2]int{from, last}]
		if !ok {
			name = fmt.Sprintf("%s to %s", units[from].Name, units[last].Name)
			e.names[[2]int{from, last}] = name
		}
		return name
	}
}

// ran accounts for a submission that ran between two timestamps; before is the end of the
// step's one before, 0 if there was none.
func (r *run) ran(s *submission, before, begin, end uint64) {
	e, clock := r.e, r.e.Device.Clock
	e.count.compute.Add(int64(clock.Between(begin, end)))
	if s.awaits != nothing && before > 0 {
		idle := clock.Between(before, begin) - s.rested
		if e.Plan.InPlace { // the host waits for the disk
			idle = min(idle, s.waited)
		} else if late, ok := e.Weights.Late(s.awaits, before); ok {
			idle = min(idle, late) // it was the bytes, not us
		}
		e.count.stalled.Add(int64(max(0, idle)))
		if isCached(&e.Plan.Units[s.awaits]) {
			e.Weights.Experts().Idle(max(0, idle))
		}
	}
	if e.Trace == nil {
		return
	}
	now := time.Now()
	clock.Saw(begin, s.submitted, now)
	clock.Saw(end, s.submitted, now)
	from, _ := clock.At(begin)
	to, _ := clock.At(end)
	r.compute(s, from, to)
}

// compute keeps the span of a submission: not before the end of the last, though what is
// known of the device's clock may have changed since.
func (r *run) compute(s *submission, begin, end time.Time) {
	e := r.e
	if begin.Before(e.last) {
		begin = e.last
	}
	if end.Before(begin) {
		end = begin
	}
	e.last = end
	name := e.holds(s.from, s.unit)
	if s.from == nothing && s != &r.timed[0] {
		name = "outputs"
	}
	e.Trace.Add(trace.Span{Lane: trace.Compute, Name: name, Step: r.step, Bytes: s.weights}, begin, end)
}

// untimed accounts for a step on a device without timestamps: it ran when it did not
// rest, and when the step did not wait for weights.
func (r *run) untimed(end time.Time) {
	e := r.e
	first := &r.timed[0]
	e.count.compute.Add(int64(max(0, end.Sub(first.submitted)-r.blocked-r.rests)))
	e.count.stalled.Add(int64(r.blocked))
	if r.missed > 0 {
		e.Weights.Experts().Idle(r.missed)
	}
	if e.Trace != nil {
		whole := submission{expected: expected{unit: len(e.Plan.Units) - 1}}
		for i := range r.timed[:r.used] {
			whole.weights += r.timed[i].weights
		}
		r.compute(&whole, first.submitted, end)
	}
}
