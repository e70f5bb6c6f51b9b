package submit

import (
	"slices"
	"time"

	"leat/internal/pace"
	"leat/internal/trace"
	"leat/vk"
)

// clock reads the timestamps of jobs that have ended, and reports how long each ran: to Options.Ran, the trace, the estimator and the pacer.
type clock struct {
	q           *Queue            // the queue whose jobs these are
	stamps      *vk.QueryPool     // two timestamps, begin and end, for each command buffer
	ticks       []uint64          // scratch: timestamps, as read
	lastEnd     uint64            // end timestamp of the last job accounted for; 0: that job has no timestamps
	lastSpanEnd time.Time         // end of the last span traced, before which no span begins
	names       map[[2]int]string // labels of jobs with several parts, by first and last part
	one         job               // scratch: the job that is being accounted for
	ran         Ran               // scratch: the argument of Options.Ran
}

// query is the index of the first of the two timestamps of command buffer n; -1: it has no timestamps. Kept command buffers are numbered first, by
// slot, then temporary ones.
func (t *clock) query(n int) int {
	if t.q.Device.Compute.TimestampBits == 0 || 2*n+1 >= t.stamps.Count {
		return -1
	}
	return 2 * n
}

// name is the label, in traces, of a job or span that begins with part from and ends with part to: Options.Name(from, to), remembered for several
// parts, or "inputs" if from is NoPart.
func (t *clock) name(from, to int) string {
	if from == NoPart {
		return "inputs"
	}
	if from == to {
		return t.q.Name(from, to)
	}
	name, ok := t.names[[2]int{from, to}]
	if !ok {
		name = t.q.Name(from, to)
		t.names[[2]int{from, to}] = name
	}
	return name
}

// account reads the timestamps of jobs that have ended, and accounts for each. first reports that list begins with the step's first job. The
// work of an untimed job is added to the next timed job of list.
func (t *clock) account(list []job, first bool) error {
	if err := t.readStamps(list); err != nil {
		return err
	}
	var joined job // the work of the untimed jobs before the next timed one
	joins := false
	for i := range list {
		one, w := &list[i], &t.one
		*w = *one
		switch {
		case one.buffer.untimed:
			joined.bytes += one.bytes
			joined.flops += one.flops
			joins = true
			continue
		case one.buffer.query < 0:
			t.accountEstimated(w)
			continue
		}
		begin, end := t.ticks[2*i], t.ticks[2*i+1]
		if joins {
			w.bytes, w.flops, joined, joins = w.bytes+joined.bytes, w.flops+joined.flops, job{}, false
			if t.lastEnd > 0 {
				begin = t.lastEnd // the untimed jobs began when the job before them ended
			}
		}
		t.accountTimed(w, first && i == 0, begin, end)
	}
	return nil
}

// accountTimed counts a job that ran from begin to end, in device ticks, and reports it to Options.Ran, the trace, the estimator and the pacer.
// first: it is the first of its step, and the idle time before it does not count.
func (t *clock) accountTimed(w *job, first bool, begin, end uint64) {
	q, clock, before := t.q, t.q.Device.Clock, t.lastEnd
	busy := t.stamps.Duration(begin, end)
	q.count.compute.Add(int64(clock.Between(begin, end)))
	ran := &t.ran
	*ran = Ran{Work: &w.Work, Cost: base(w.bytes, w.flops), Busy: busy, Timed: true}
	if !first && before > 0 {
		ran.PreviousEnd, ran.Idle = before, clock.Between(before, begin)-w.rested
	}
	if q.Ran != nil {
		q.Ran(ran)
	}
	if q.Trace != nil {
		now := time.Now()
		clock.Saw(begin, w.submitted, now)
		clock.Saw(end, w.submitted, now)
		at, _ := clock.At(begin)
		to, _ := clock.At(end)
		t.span(w, first, at, to)
	}
	q.cost.learn(w.bytes, w.flops, busy.Seconds())
	if q.Pacer != nil {
		var idle time.Duration
		if before > 0 {
			idle = t.stamps.Duration(before, begin)
		}
		q.Pacer.Ran(pace.Key{Unit: w.To, Rows: w.Rows}, ran.Cost, busy, idle)
	}
	t.lastEnd = end
}

// span traces a job that ran from begin to end. If the last span ended after begin, the new one starts at that end: spans could overlap otherwise,
// because the estimate of the device's clock changes.
func (t *clock) span(w *job, first bool, begin, end time.Time) {
	if begin.Before(t.lastSpanEnd) {
		begin = t.lastSpanEnd
	}
	if end.Before(begin) {
		end = begin
	}
	t.lastSpanEnd = end
	name := t.name(w.From, w.To)
	if w.From == NoPart && !first {
		name = "outputs"
	}
	t.q.Trace.Add(trace.Span{Lane: trace.Compute, Name: name, Step: t.q.Commands.step, Bytes: w.WeightBytes}, begin, end)
}

// readStamps reads the two timestamps of each job that has them into ticks, with one read for each run of adjacent timestamps.
func (t *clock) readStamps(list []job) error {
	t.ticks = slices.Grow(t.ticks[:0], 2*len(list))[:2*len(list)]
	for i := 0; i < len(list); {
		first, n := list[i].buffer.query, 0
		for first >= 0 && i+n < len(list) && list[i+n].buffer.query == first+2*n {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		if err := t.stamps.Read(first, t.ticks[2*i:2*(i+n)]); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// accountEstimated accounts for a job without timestamps: it counts the job's estimated time and tells the pacer. It does not call Options.Ran.
func (t *clock) accountEstimated(w *job) {
	q, busy := t.q, seconds(t.q.cost.seconds(w.bytes, w.flops))
	t.lastEnd = 0
	if q.Device.Compute.TimestampBits > 0 { // else accountStep counts the measured time of the step
		q.count.compute.Add(int64(busy))
	}
	if p := q.Pacer; p != nil {
		p.RanUntimed(busy)
	}
}

// accountStep counts and traces a step on a device without timestamps as one span. The device is taken to run from the first submission to end,
// except during the pacer's rests and while the host waited for bytes. It calls Options.Ran for each job whose bytes the host waited for.
func (t *clock) accountStep(list []job, end time.Time) {
	q, first, whole := t.q, list[0].submitted, job{Work: Work{From: NoPart, To: list[len(list)-1].To}}
	busy := end.Sub(first)
	for i := range list {
		one := &list[i]
		busy -= one.Waited + one.rested
		whole.WeightBytes += one.WeightBytes
		if q.Ran != nil && one.Waited > 0 {
			t.ran = Ran{Work: &one.Work, Idle: one.Waited}
			q.Ran(&t.ran)
		}
	}
	q.count.compute.Add(int64(max(0, busy)))
	if q.Trace != nil {
		t.span(&whole, true, first, end)
	}
}
