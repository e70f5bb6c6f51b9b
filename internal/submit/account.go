package submit

import (
	"slices"
	"time"

	"leat/internal/pace"
	"leat/internal/trace"
	"leat/vk"
)

// clock is what a queue knows of time, by timestamps.
type clock struct {
	q      *Queue
	stamps *vk.QueryPool
	ticks  []uint64          // timestamps, as read
	ended  uint64            // the last one of the submission before; 0: not known
	last   time.Time         // end of the last span traced
	names  map[[2]int]string // of submissions with several parts
	one    submission        // that is accounted for
	ran    Ran               // and what is told of it
}

// query is the first of two timestamps of the n'th command buffer; -1: it has none.
func (t *clock) query(n int) int {
	if t.q.Device.Compute.TimestampBits == 0 || 2*n+1 >= t.stamps.Count {
		return -1
	}
	return 2 * n
}

func (t *clock) name(from, to int) string {
	if from == Nothing {
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

// account reads the timestamps of submissions that have ended, the step's first or those behind others, and tells the estimator, the pacer
// and Options.Ran of them. One that is untimed counts to the next.
func (t *clock) account(list []submission, first bool) error {
	if err := t.readStamps(list); err != nil {
		return err
	}
	var joined submission // those that count to the next
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
			t.guess(w)
			continue
		}
		begin, end := t.ticks[2*i], t.ticks[2*i+1]
		if joins {
			w.bytes, w.flops, joined, joins = w.bytes+joined.bytes, w.flops+joined.flops, submission{}, false
			if t.ended > 0 {
				begin = t.ended // they began when what was before them ended
			}
		}
		t.timed(w, first && i == 0, begin, end)
	}
	return nil
}

// timed accounts for a submission, the first of its step or not, that ran between two timestamps.
func (t *clock) timed(w *submission, first bool, begin, end uint64) {
	q, clock, before := t.q, t.q.Device.Clock, t.ended
	busy := t.stamps.Duration(begin, end)
	q.count.compute.Add(int64(clock.Between(begin, end)))
	ran := &t.ran
	*ran = Ran{Work: &w.Work, Cost: base(w.bytes, w.flops), Busy: busy, Timed: true}
	if !first && before > 0 {
		ran.Before, ran.Idle = before, clock.Between(before, begin)-w.rested
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
	t.ended = end
}

// span traces a submission: not before the end of the last, though what is known of the device's clock may have changed since.
func (t *clock) span(w *submission, first bool, begin, end time.Time) {
	if begin.Before(t.last) {
		begin = t.last
	}
	if end.Before(begin) {
		end = begin
	}
	t.last = end
	name := t.name(w.From, w.To)
	if w.From == Nothing && !first {
		name = "outputs"
	}
	t.q.Trace.Add(trace.Span{Lane: trace.Compute, Name: name, Step: t.q.Commands.step, Bytes: w.WeightBytes}, begin, end)
}

// readStamps reads two timestamps of each submission that has some: at once those that lie side by side.
func (t *clock) readStamps(list []submission) error {
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

// guess accounts for a submission that has no timestamps: of the idle time only the pacer's own rests are known.
func (t *clock) guess(w *submission) {
	q, busy := t.q, seconds(t.q.cost.seconds(w.bytes, w.flops))
	t.ended = 0
	if q.Device.Compute.TimestampBits > 0 { // else untimed knows better
		q.count.compute.Add(int64(busy))
	}
	if p := q.Pacer; p != nil {
		p.RanUntimed(busy)
	}
}

// untimed accounts for a step on a device without timestamps: it ran when it did not rest, and when the host did not wait for bytes.
func (t *clock) untimed(list []submission, end time.Time) {
	q, first, whole := t.q, list[0].submitted, submission{Work: Work{From: Nothing, To: list[len(list)-1].To}}
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
