package submit

import (
	"leat/internal/kernels"
	"leat/vk"
)

// buffers are the command buffers of a queue: those of one step alone, which every step records anew, and those that are kept.
type buffers struct {
	temps []*buffer
	kept  []buffer
}

// buffer is a command buffer.
type buffer struct {
	cb        *vk.CommandBuffer
	query     int // of its two timestamps, the first; -1: it has none
	recording bool

	// Of one that is kept.
	slot         bool
	untimed      bool            // its time counts to the next submission that is timed
	whole        bool            // it is recorded and was submitted: it may be again
	after        kernels.Brought // what the commands before it left, as the recorder knew when it began
	left         kernels.Brought // and when it was over
	bytes, flops float64         // its work
}

// Open opens a command buffer for this step alone, behind what was recorded before.
func (c *Commands) Open() error {
	q, b := c.q, &c.q.buffers
	for len(b.temps) <= c.temps {
		b.temps = append(b.temps, &buffer{query: q.clock.query(len(b.kept) + len(b.temps))})
	}
	one := b.temps[c.temps]
	c.temps++
	q.again.whole = false // its commands are recorded over
	if err := c.begin(one); err != nil {
		return err
	}
	if n := len(c.list); n == 0 || c.list[n-1].unknown {
		q.Rec.Reset(one.cb)
	} else {
		q.Rec.Continue(one.cb)
	}
	c.record(one)
	return nil
}

// OpenKept opens the command buffer of a slot. Where it was recorded before it is to be submitted again as it is: then again is true,
// and nothing may be recorded. after is what the recorder may rely on when it begins: which inputs
// the commands before it left in bytes. With untimed it has no timestamps, and its time counts to the next command buffer that has.
func (c *Commands) OpenKept(slot int, after kernels.Brought, untimed bool) (again bool, err error) {
	q, b := c.q, &c.q.buffers.kept[slot]
	if b.whole && b.after == after {
		c.open = submission{Work: c.work(), buffer: b, unknown: true}
		return true, nil
	}
	b.slot, b.whole, b.after, b.untimed, b.query = true, false, after, untimed, -1
	if !untimed {
		b.query = q.clock.query(slot)
	}
	if err := c.begin(b); err != nil {
		return false, err
	}
	q.Rec.Behind(b.cb, after)
	c.record(b)
	return false, nil
}

func (c *Commands) work() Work { return Work{From: c.part, Rows: c.rows, Awaits: Nothing} }

// begin begins a command buffer.
func (c *Commands) begin(b *buffer) (err error) {
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

// record makes a command buffer that has begun, and that the recorder knows of, the open one.
func (c *Commands) record(b *buffer) {
	q := c.q
	q.Configure(q.Rec)
	c.open = submission{Work: c.work(), buffer: b}
	if !b.untimed { // such a one follows dispatches, with a barrier of its own
		b.stamp(q, 0)
		q.Rec.Barrier() // after all that was submitted before, streamed bytes included
	}
	if t := q.timer; t != nil {
		cb := b.cb
		t.begin(cb, len(c.list) == 0)
		q.Rec.Told = func(op string, bytes, flops float64) { t.mark(cb, opMark{op, bytes, flops}) }
	}
	if q.Pacer != nil {
		q.cost.most = q.Pacer.Longest().Seconds()
	}
}

func (b *buffer) stamp(q *Queue, end int) {
	if b.query >= 0 {
		b.cb.WriteTimestamp(q.clock.stamps, b.query+end)
	}
}

// end ends the recording of a command buffer.
func (b *buffer) end(q *Queue) error {
	if err := q.Rec.Finish(); err != nil {
		return err
	}
	b.bytes, b.flops = q.Rec.Cost()
	b.left = q.Rec.Brought()
	b.stamp(q, 1)
	if err := b.cb.End(); err != nil {
		return err
	}
	b.recording = false
	return nil
}
