package submit

import (
	"context"
	"time"

	"leat/internal/kernels"
	"leat/vk"
)

// Commands are the commands of the current step. The caller records them into one command buffer after another; each is open, then closed
// and enqueued, then submitted.
type Commands struct {
	q        *Queue              // the queue that the commands go to
	ctx      context.Context     // when it is done, the step ends
	step     int                 // number of the step, from 1
	rows     int                 // rows of the step
	open     job                 // job of the open command buffer; zero if none is open
	list     []job               // closed command buffers of the step, in order
	done     progress            // how far the device has come with list
	pending  []*vk.CommandBuffer // command buffers enqueued, to be submitted together
	waits    []vk.Point          // points that the next submission waits for
	temps    int                 // number of temporary command buffers opened in this step
	cuts     int                 // number of calls of Cut, see [Commands.Cuts]
	part     int                 // the caller's part that is being recorded; NoPart: none is
	lastPart int                 // the part entered last; NoPart: none was
}

// job is the use of one command buffer in a step: its work, its state and when it was submitted. A submission has one or more jobs.
type job struct {
	Work
	bytes, flops float64       // cost of its commands
	buffer       *buffer       // the command buffer
	parts        int           // number of the caller's parts that end in the command buffer
	again        bool          // recorded in an earlier step: the recorder doesn't know which inputs its commands leave quantized
	cut          bool          // Cut was called while it was open: it may lack commands of its slot, so it must not be submitted again
	value        uint64        // timeline value of its submission
	submitted    time.Time     // when the host submitted it
	rested       time.Duration // the pacer's rest just before it
}

// progress says how many jobs of Commands.list, counted from its start, have reached each state, and how much work the device has left.
type progress struct {
	sent      int     // number of jobs submitted
	ended     int     // number of jobs known to have ended
	accounted int     // number of jobs accounted for, see clock.account
	behind    float64 // estimated work of list[ended:sent], submitted and not known to have ended: seconds on the yardstick device, see [estimator]
}

// Context is the context of the step: when it is done, the step ends.
func (c *Commands) Context() context.Context { return c.ctx }

// Step is the number of the step, from 1.
func (c *Commands) Step() int { return c.step }

// Cuts is the number of calls of [Commands.Cut] in this step, also of those without work to submit; calls for an untimed command buffer don't
// count. A caller compares two readings to learn whether commands recorded between them were cut.
func (c *Commands) Cuts() int { return c.cuts }

// Closed is the number of command buffers closed in this step: the index that the open one will have in [Commands.WeightBytes].
func (c *Commands) Closed() int { return len(c.list) }

// Enter says which of the caller's parts is recorded from now on, for Work.From and Work.To.
func (c *Commands) Enter(part int) {
	c.part, c.lastPart = part, part
	if c.open.From == NoPart {
		c.open.From = part
	}
}

// Leave says that the part entered last is recorded in full, and counts it for [Commands.Full].
func (c *Commands) Leave() {
	c.part = NoPart
	c.open.parts++
}

// Full reports whether the caller should submit the open command buffer, because it holds enough parts or the pacer wants a rest. A step's
// first command buffers are small, as the device is idle while they are recorded; later ones are larger, as each submission has a fixed cost.
func (c *Commands) Full() bool {
	return c.open.parts >= mostParts(c.done.sent) || c.q.due()
}

// mostParts is the number of the caller's parts at which a command buffer is full. It grows with sent, the number of the step's command buffers
// that were submitted before: 2, 8, then 24.
func mostParts(sent int) int {
	const first, growth, most = 2, 4, 24
	n := first
	for range min(sent, 2) {
		n *= growth
	}
	return min(n, most)
}

// Work is the [Work] of the open command buffer, which the caller may change.
func (c *Commands) Work() *Work { return &c.open.Work }

// Wait makes the next submission wait on the device for points, which signal that the bytes of the caller's part awaits are uploaded, and sets
// Work.Awaits of the open command buffer. Without points it does nothing.
func (c *Commands) Wait(points []vk.Point, awaits int) {
	if len(points) > 0 {
		c.waits = append(c.waits, points...)
		c.open.Awaits = awaits
	}
}

// Charge adds work to the cost of the open command buffer. Negative bytes and flops are for work that is recorded in a kept command buffer, but
// skipped in this step.
func (c *Commands) Charge(bytes, flops float64) {
	c.open.bytes += bytes
	c.open.flops += flops
}

// Again reports whether the open command buffer was recorded in an earlier step, and is submitted as it is.
func (c *Commands) Again() bool { b := c.open.buffer; return b != nil && !b.recording }

// Buffer is the open command buffer, for commands that the recorder has no method for.
func (c *Commands) Buffer() *vk.CommandBuffer { return c.open.buffer.cb }

// Quantised describes the quantized inputs that commands after the open command buffer may read, for [Commands.OpenKept].
func (c *Commands) Quantised() kernels.Quantised {
	if c.Again() {
		return c.open.buffer.quantised
	}
	return c.q.Rec.Quantised()
}

// Enqueue closes the open command buffer. The next Flush submits it, with all command buffers enqueued before that Flush.
func (c *Commands) Enqueue() error {
	b := c.open.buffer
	if b.recording {
		if err := b.end(c.q); err != nil {
			return err
		}
	}
	c.open.To = max(c.lastPart, 0)
	c.open.bytes += b.bytes
	c.open.flops += b.flops
	c.list, c.pending = append(c.list, c.open), append(c.pending, b.cb)
	c.open = job{}
	return nil
}

// Submit closes the open command buffer and submits it after the enqueued ones, in one submission. Like [Commands.Flush] it may wait for the device first.
func (c *Commands) Submit() error {
	if err := c.Enqueue(); err != nil {
		return err
	}
	return c.Flush()
}

// Flush submits the enqueued command buffers in one submission, if there are any. It first waits: for the pacer's rest, until the device has
// little work left, and for Options.ReadRate. Kept buffers that were not cut may be submitted again from then on.
func (c *Commands) Flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	q, d := c.q, &c.done
	if err := q.ready(); err != nil {
		return err
	}
	if err := q.send(c.pending, c.waits); err != nil {
		return err
	}
	now := time.Now()
	for i := range c.list[d.sent:] {
		one := &c.list[d.sent+i]
		one.submitted, one.value = now, q.value
		if one.buffer.kept {
			one.buffer.reusable = !one.cut
		}
		d.behind += base(one.bytes, one.flops)
		q.count.weights.Add(one.WeightBytes)
	}
	d.sent, c.pending, c.waits = len(c.list), c.pending[:0], c.waits[:0]
	if q.timer != nil {
		q.timer.submitted = len(q.timer.marks)
	}
	return nil
}

// WeightBytes is the number of bytes of weights that the n'th closed command buffer of the step reads, from 0.
func (c *Commands) WeightBytes(n int) int64 { return c.list[n].WeightBytes }

// Discount takes the work of submitted command buffers, from the one with index from on, off the counters and estimates: the device has
// skipped their conditional dispatches. All submitted ones must have ended.
func (c *Commands) Discount(from int) {
	for i := from; i < c.done.sent; i++ {
		one := &c.list[i]
		c.q.count.weights.Add(-one.WeightBytes)
		one.bytes, one.flops, one.WeightBytes = 0, 0, 0
	}
	c.done.ended, c.done.behind = c.done.sent, 0
}
