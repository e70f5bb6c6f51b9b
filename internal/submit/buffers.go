package submit

import (
	"leat/internal/kernels"
	"leat/vk"
)

// buffers are the command buffers of a queue. None is freed before the queue is closed.
type buffers struct {
	temps []*buffer // temporary: each step records them anew, in this order
	kept  []buffer  // by slot: later steps may submit them again
}

// buffer is a Vulkan command buffer, temporary or kept, with its two timestamps. What a step does with it is a [job].
type buffer struct {
	cb        *vk.CommandBuffer // nil: not allocated yet
	query     int               // index of its first timestamp; -1: it has none
	recording bool              // its recording has begun, and has not ended

	kept         bool              // it is one of buffers.kept
	untimed      bool              // kept without timestamps: its time is added to the next timed job
	reusable     bool              // kept, recorded in full and submitted: it may be submitted again
	after        kernels.Quantised // inputs, quantized by earlier commands, that its commands may read
	quantised    kernels.Quantised // quantized inputs that later commands may read
	bytes, flops float64           // work of its commands
}

// Open opens a temporary command buffer, which runs after all commands recorded before. The step that [Queue.KeepStep] kept can no longer be
// repeated, as this overwrites its commands. The recorder still knows which inputs earlier commands of the step have quantized, unless the command
// buffer before this one was recorded in an earlier step.
func (c *Commands) Open() error {
	q, b := c.q, &c.q.buffers
	for len(b.temps) <= c.temps {
		b.temps = append(b.temps, &buffer{query: q.clock.query(len(b.kept) + len(b.temps))})
	}
	one := b.temps[c.temps]
	c.temps++
	q.keptStep.reusable = false // its commands are overwritten
	if err := c.beginRecording(one); err != nil {
		return err
	}
	if n := len(c.list); n == 0 || c.list[n-1].again {
		q.Rec.Reset(one.cb)
	} else {
		q.Rec.Continue(one.cb)
	}
	c.startJob(one)
	return nil
}

// OpenKept opens the kept command buffer of a slot. after describes the quantized inputs that its commands may read, see [Commands.Quantised].
// again: an earlier step recorded it with the same after, and the caller must not record into it. untimed: it has no timestamps, its time is
// added to the next timed command buffer, and it can't be cut.
func (c *Commands) OpenKept(slot int, after kernels.Quantised, untimed bool) (again bool, err error) {
	q, b := c.q, &c.q.buffers.kept[slot]
	if b.reusable && b.after == after {
		c.open = job{Work: c.work(), buffer: b, again: true}
		return true, nil
	}
	b.kept, b.reusable, b.after, b.untimed, b.query = true, false, after, untimed, -1
	if !untimed {
		b.query = q.clock.query(slot)
	}
	if err := c.beginRecording(b); err != nil {
		return false, err
	}
	q.Rec.ContinueAfter(b.cb, after)
	c.startJob(b)
	return false, nil
}

// work is the [Work] that a command buffer begins with: the part being recorded, the step's rows, and no bytes.
func (c *Commands) work() Work { return Work{From: c.part, Rows: c.rows, Awaits: NoPart} }

// beginRecording begins a command buffer, and allocates it on first use. The step's first one resets all timestamps.
func (c *Commands) beginRecording(b *buffer) (err error) {
	if b.cb == nil {
		if b.cb, err = c.q.pool.New(); err != nil {
			return err
		}
	}
	if err := b.cb.BeginReusable(); err != nil {
		return err
	}
	b.recording = true
	if len(c.list) == 0 {
		b.cb.ResetQueries(c.q.clock.stamps, 0, c.q.clock.stamps.Count)
	}
	return nil
}

// startJob makes b, which has begun and which the recorder records into, the open command buffer. It configures the recorder; if b is timed it
// records the begin timestamp and a barrier after all earlier work; it starts to time kernels, and asks the pacer how long a submission may run.
func (c *Commands) startJob(b *buffer) {
	q := c.q
	q.Configure(q.Rec)
	c.open = job{Work: c.work(), buffer: b}
	if !b.untimed { // the caller of an untimed buffer records a barrier of its own
		b.stamp(q, 0)
		q.Rec.Barrier() // after all that was submitted before, streamed bytes included
	}
	if t := q.timer; t != nil {
		cb := b.cb
		t.begin(cb, len(c.list) == 0)
		q.Rec.Watch.Recorded = func(op string, bytes, flops float64) { t.mark(cb, opMark{op, bytes, flops}) }
	}
	if q.Pacer != nil {
		q.cost.pacerLimit = q.Pacer.Longest().Seconds()
	}
}

// stamp records a timestamp, the begin (end 0) or the end (end 1) of the command buffer, if it has timestamps.
func (b *buffer) stamp(q *Queue, end int) {
	if b.query >= 0 {
		b.cb.WriteTimestamp(q.clock.stamps, b.query+end)
	}
}

// end ends the recording of a command buffer, and notes its work and the inputs it leaves quantized.
func (b *buffer) end(q *Queue) error {
	if err := q.Rec.Finish(); err != nil {
		return err
	}
	b.bytes, b.flops = q.Rec.Cost()
	b.quantised = q.Rec.Quantised()
	b.stamp(q, 1)
	if err := b.cb.End(); err != nil {
		return err
	}
	b.recording = false
	return nil
}
