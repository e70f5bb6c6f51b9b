package submit

import (
	"context"
	"time"

	"leat/internal/kernels"
	"leat/vk"
)

// Commands are the commands of the step under way: recorded into one command buffer after another, enqueued, submitted.
type Commands struct {
	q       *Queue
	ctx     context.Context // ends the step
	step    int             // 1 for the first
	rows    int             // of the step
	open    submission      // being recorded
	list    []submission    // closed, in order
	done    progress        // of list
	pending []*vk.CommandBuffer
	waits   []vk.Point // of the submission being recorded
	temps   int        // command buffers opened for this step alone
	cuts    int        // times that work was cut because it would have run too long, or waited
	part    int        // of the caller's work that is being recorded; Nothing: between two
	at      int        // the last one; Nothing: before the first
}

// submission is one command buffer of a submission, and what is known of it.
type submission struct {
	Work
	bytes, flops float64
	buffer       *buffer
	parts        int  // of the caller's work that ended in it
	unknown      bool // the recorder knows nothing of what it leaves: its commands were kept
	cut          bool // it does not hold all that its slot stands for
	value        uint64
	submitted    time.Time
	rested       time.Duration // just before it
}

// progress counts how far a list of submissions has come.
type progress struct {
	sent   int     // submitted
	over   int     // known to have ended
	told   int     // accounted for
	behind float64 // yardstick seconds of those submitted and perhaps not over
}

// Context ends the step.
func (c *Commands) Context() context.Context { return c.ctx }

// Step counts the steps begun.
func (c *Commands) Step() int { return c.step }

// Cuts is how often the step's work was cut because it would have run too long, or waited.
func (c *Commands) Cuts() int { return c.cuts }

// Closed counts the step's command buffers that are closed.
func (c *Commands) Closed() int { return len(c.list) }

// Enter says which part of the caller's work is recorded from now on.
func (c *Commands) Enter(part int) {
	c.part, c.at = part, part
	if c.open.From == Nothing {
		c.open.From = part
	}
}

// Leave says that the part entered last has ended.
func (c *Commands) Leave() {
	c.part = Nothing
	c.open.parts++
}

// Full reports whether the open command buffer should be submitted, as it holds enough parts or has earned a rest. The first submissions of a
// step are small, for the device waits while they are recorded; then they grow, for each costs the host and the device a little.
func (c *Commands) Full() bool {
	return c.open.parts >= mostParts(c.done.sent) || c.q.due()
}

// mostParts is how many parts a submission holds at most behind so many others of its step.
func mostParts(sent int) int {
	const first, growth, most = 2, 4, 24
	n := first
	for range min(sent, 2) {
		n *= growth
	}
	return min(n, most)
}

// Work is that of the open command buffer.
func (c *Commands) Work() *Work { return &c.open.Work }

// Wait has the submission being recorded wait for points, which stand for the bytes of a part of the caller's work.
func (c *Commands) Wait(points []vk.Point, awaits int) {
	if len(points) > 0 {
		c.waits = append(c.waits, points...)
		c.open.Awaits = awaits
	}
}

// Charge adds work of a kept command buffer to its cost or, negative, takes off what this step leaves out.
func (c *Commands) Charge(bytes, flops float64) {
	c.open.bytes += bytes
	c.open.flops += flops
}

// Again reports whether the open command buffer was recorded in a step before.
func (c *Commands) Again() bool { b := c.open.buffer; return b != nil && !b.recording }

// Buffer is the open command buffer, for commands that the recorder has no words for.
func (c *Commands) Buffer() *vk.CommandBuffer { return c.open.buffer.cb }

// Left is what the recorder knows when the open command buffer is over.
func (c *Commands) Left() kernels.Brought {
	if c.Again() {
		return c.open.buffer.left
	}
	return c.q.Rec.Brought()
}

// Enqueue closes the open command buffer, to be submitted with those that follow.
func (c *Commands) Enqueue() error {
	b := c.open.buffer
	if b.recording {
		if err := b.end(c.q); err != nil {
			return err
		}
	}
	c.open.To = max(c.at, 0)
	c.open.bytes += b.bytes
	c.open.flops += b.flops
	c.list, c.pending = append(c.list, c.open), append(c.pending, b.cb)
	c.open = submission{}
	return nil
}

// Submit closes the open command buffer and submits it, behind those that are enqueued.
func (c *Commands) Submit() error {
	if err := c.Enqueue(); err != nil {
		return err
	}
	return c.Flush()
}

// Flush submits what is enqueued: after the pacer's rest, once the device is not too far behind.
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
		if one.buffer.slot {
			one.buffer.whole = !one.cut
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

// WeightBytes is what the n'th command buffer closed reads of weights.
func (c *Commands) WeightBytes(n int) int64 { return c.list[n].WeightBytes }

// Discount takes the work of the command buffers submitted, from the from-th closed on, off the account: the device skipped its conditional dispatches.
func (c *Commands) Discount(from int) {
	for i := from; i < c.done.sent; i++ {
		one := &c.list[i]
		c.q.count.weights.Add(-one.WeightBytes)
		one.bytes, one.flops, one.WeightBytes = 0, 0, 0
	}
	c.done.over, c.done.behind = c.done.sent, 0
}
