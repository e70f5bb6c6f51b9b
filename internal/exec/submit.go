package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/vk"
)

// submission is what a run remembers of one.
type submission struct {
	expected
	rows      int           // of the step when it began
	from      int           // first unit of the plan that it holds, or nothing
	weights   int64         // bytes of the units that begin in it
	awaits    int           // unit whose bytes it waits for, or the host did, or nothing
	waited    time.Duration // by the host, for those bytes
	rested    time.Duration // just before it
	nth       int           // of the step's command buffers and pairs of timestamps
	part      int           // of the step, that is kept; nothing: it is none
	leaps     bool          // of a layer that goes ahead
	ends      bool          // it ends those, which are timed together
	value     uint64        // that the compute timeline has when it is over
	submitted time.Time
}

// begin opens the step's next command buffer, which is no part.
func (r *run) begin() error {
	r.part, r.nth, r.again = nothing, r.extra, false
	r.extra++
	if !r.parts {
		r.e.replay.key = replayKey{} // what was recorded before is gone
	}
	return r.record()
}

// record opens the nth command buffer.
func (r *run) record() error {
	e := r.e
	for len(e.cbs) <= r.nth {
		cb, err := e.pool.New()
		if err != nil {
			return err
		}
		e.cbs = append(e.cbs, cb)
	}
	r.cb = e.cbs[r.nth]
	if err := r.cb.BeginReusable(); err != nil {
		return err
	}
	if r.used == 0 {
		r.cb.ResetQueries(e.stamps, 0, e.stamps.Count)
	}
	switch {
	case r.part != nothing:
		r.rec.Behind(r.cb, e.parts[r.part].brought)
	case r.used == 0 || r.stale:
		r.rec.Reset(r.cb)
	default:
		r.rec.Continue(r.cb)
	}
	r.suit()
	r.rec.Absent = r.absent
	s := &e.Plan.Scratch
	r.rec.Scratch, r.rec.Q8, r.rec.Parts, r.rec.Counters = r.memory(s.Halves), r.memory(s.Q8), r.memory(s.Parts), r.memory(s.Counts)
	r.next = submission{rows: len(r.rows), from: r.open, awaits: nothing, nth: r.nth}
	if r.next.leaps = e.leaps(r.part); !r.next.leaps { // that begins behind dispatches, with a barrier of its own
		r.stamp(0)
		r.rec.Barrier() // after all that was submitted before, streamed bytes included
	}
	if t := e.timer; t != nil {
		t.begin(r.cb, r.used == 0)
		r.rec.Told = func(op string, bytes, flops float64) { t.mark(r.cb, opMark{op, bytes, flops}) }
	}
	r.units = 0
	if e.Pacer != nil {
		e.cost.most = e.Pacer.Longest().Seconds()
	}
	return nil
}

func (r *run) memory(g plan.Region) kernels.Scratch {
	return kernels.Scratch{Address: r.addr(g), Bytes: g.Bytes}
}

func (r *run) stamp(end int) {
	if r.stamped(r.nth) && !r.next.leaps {
		r.cb.WriteTimestamp(r.e.stamps, 2*r.nth+end)
	}
}

// submit closes the command buffer and submits it, behind those that are queued; the step goes on with begin.
func (r *run) submit() error {
	if err := r.queue(); err != nil {
		return err
	}
	return r.flush()
}

// queue closes the command buffer, to be submitted with those that follow.
func (r *run) queue() error {
	e := r.e
	if !r.again {
		if err := r.rec.Finish(); err != nil {
			return err
		}
		if r.part != nothing {
			e.parts[r.part].left = r.rec.Brought()
		}
		r.stamp(1)
		if err := r.cb.End(); err != nil {
			return err
		}
	}
	r.worked()
	r.next.part = r.part
	r.timed, r.pending = append(r.timed, r.next), append(r.pending, r.cb)
	r.cb, r.stale = nil, r.again
	return nil
}

// flush submits what is queued.
func (r *run) flush() error {
	e := r.e
	if err := r.tellHost(); err != nil {
		return err
	}
	if err := r.rest(); err != nil {
		return err
	}
	if err := r.keepUp(); err != nil {
		return err
	}
	if err := r.read(); err != nil {
		return err
	}
	r.signal[0] = vk.Point{Timeline: e.Compute, Value: e.value + 1}
	now := time.Now()
	if err := e.Device.Compute.Submit(vk.Submission{Commands: r.pending, Waits: r.waits, Signals: r.signal[:]}); err != nil {
		return err
	}
	e.value++
	for i := range r.timed[r.used:] {
		s := &r.timed[r.used+i]
		s.submitted, s.value = now, e.value
		if s.part != nothing {
			e.parts[s.part].kept = true
		}
		r.behind += base(s.bytes, s.flops)
		e.count.weights.Add(s.weights)
	}
	for i := range r.leaps {
		if l := &r.leaps[i]; l.value == 0 {
			l.value = e.value
		}
	}
	r.used, r.pending = len(r.timed), r.pending[:0]
	if e.timer != nil {
		e.timer.submitted = len(e.timer.marks)
	}
	r.waits = r.waits[:0]
	e.count.submissions.Add(1)
	return nil
}

// read waits as long as a slower memory would take to read the submission's weights.
func (r *run) read() error {
	if r.e.VRAMRate == nil {
		return nil
	}
	r.pause()
	defer r.resume()
	return r.e.VRAMRate.Wait(r.ctx, r.next.weights)
}

const (
	aheadTime  = 500 * time.Millisecond // of work that the device may be behind
	aheadLeast = 2                      // submissions that it may always be
)

// keepUp waits while the device has much to do. What is submitted can't be taken back,
// so this is how long a step goes on that is stopped.
func (r *run) keepUp() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	e := r.e
	for r.used-r.over > aheadLeast && r.behind*e.cost.scale > aheadTime.Seconds() {
		if err := r.await(r.timed[r.over].value); err != nil {
			return err
		}
		r.behind -= base(r.timed[r.over].bytes, r.timed[r.over].flops)
		r.over++
	}
	return nil
}

// broken ends a step that failed, or that its context has ended, and returns why.
func (r *run) broken(err error) error {
	ctx := r.ctx.Err()
	stopped := ctx != nil && errors.Is(err, ctx)
	if errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	if !stopped {
		r.e.replay.key = replayKey{} // what is kept for the next step may be recorded in part
		clear(r.e.parts)
	}
	if failed := r.drop(); failed != nil {
		return errors.Join(err, failed)
	}
	if stopped {
		return fmt.Errorf("%w: %w", ErrStopped, ctx)
	}
	return err
}

// drop leaves a step that was begun: what is submitted runs to its end, the rest is forgotten.
func (r *run) drop() error {
	e := r.e
	if r.cb != nil && !r.again {
		_ = r.cb.End() // a command buffer that is being recorded can't be begun again
	}
	clear(e.table) // what it was to tell the device, it has not
	for l := range e.ahead.stale {
		e.ahead.stale[l] = true
	}
	if err := e.Compute.Wait(context.Background(), e.value); err != nil {
		return err
	}
	if err := e.Weights.Abort(e.value); err != nil {
		return err
	}
	return r.finish()
}

// cut submits what is recorded, if anything, and goes on in a new command buffer.
func (r *run) cut() error {
	r.part = nothing // what is cut is not kept
	r.cuts++
	if bytes, flops := r.rec.Cost(); bytes == 0 && flops == 0 && len(r.waits) == 0 && r.used > 0 {
		return nil
	}
	leaping := r.leaping
	if err := r.landed(); err != nil {
		return err
	}
	if err := r.submit(); err != nil {
		return err
	}
	if err := r.begin(); err != nil || !leaping {
		return err
	}
	r.leaping = true
	r.onlyIfThere()
	return nil
}

// rowGroup is the granule of a split: rows of uint32 then begin on 16 bytes, and kernels of few rows have all they take.
const rowGroup = 8

// byRows runs do over n rows in as few parts as keep each submission short.
func (r *run) byRows(n uint32, flopsPerRow float64, do func(from, n uint32) error) error {
	for from := uint32(0); from < n; {
		bytes, flops := r.rec.Cost()
		part := r.e.cost.rows(bytes, flops, flopsPerRow, n-from)
		if part == 0 || part < n-from && r.e.cost.rows(0, 0, flopsPerRow, n-from) == n-from { // each part reads the weights
			if err := r.cut(); err != nil {
				return err
			}
			if err := r.measure(); err != nil {
				return err
			}
			part = r.e.cost.rows(0, 0, flopsPerRow, n-from)
		}
		part = min(max(part, r.rec.LeastRows(), rowGroup), n-from)
		if err := do(from, part); err != nil {
			return err
		}
		from += part
	}
	return nil
}

// measure waits for what is submitted, to learn how fast the device is, where nothing is known of it yet: a fast one
// need not do its first steps in many parts.
func (r *run) measure() error {
	if r.e.cost.known() || r.told == r.used || r.e.Device.Compute.TimestampBits == 0 {
		return nil
	}
	r.pause()
	defer r.resume()
	if err := r.e.Compute.Wait(r.ctx, r.e.value); err != nil {
		return err
	}
	return r.account()
}
