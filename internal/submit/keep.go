package submit

import (
	"fmt"
	"time"

	"leat/vk"
)

// again is the last step recorded, where it can be submitted again as it is: decoding one token with all weights in VRAM is the same
// work for the next token, but for the inputs, which are in memory.
type again struct {
	whole bool // there is one
	now   bool // the step under way is it
	list  []submission
	cbs   []*vk.CommandBuffer
	took  time.Duration // by the last time it was submitted again, as the host saw it; 0: it was not yet
}

// Keep keeps the step that has been recorded and submitted, to be submitted again as a whole until a command buffer is opened for one
// step alone. It does not keep one that waited for bytes, or that would be too long to be stopped.
func (q *Queue) Keep() {
	c, a := &q.Commands, &q.again
	var work float64
	for i := range c.list {
		if c.list[i].Awaits != Nothing {
			return
		}
		work += base(c.list[i].bytes, c.list[i].flops)
	}
	if work*q.cost.scale > mostBehind.Seconds() {
		return
	}
	a.whole, a.took = true, 0
	a.list, a.cbs = append(a.list[:0], c.list...), a.cbs[:0]
	for i := range c.list {
		a.cbs = append(a.cbs, c.list[i].buffer.cb)
	}
}

// Kept reports whether there is a step to be submitted again.
func (q *Queue) Kept() bool { return q.again.whole }

// Repeat submits the commands of the step that is kept, as this step.
func (q *Queue) Repeat() error {
	c, a := &q.Commands, &q.again
	if err := c.ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if err := q.send(a.cbs, nil); err != nil {
		return fmt.Errorf("submit the commands of the step before again: %w", err)
	}
	for i := range a.list {
		one := a.list[i]
		one.submitted, one.rested, one.Waited, one.value = now, 0, 0, q.value
		c.list = append(c.list, one)
		q.count.weights.Add(one.WeightBytes)
	}
	c.done.sent, a.now = len(c.list), true
	return nil
}

// Forget drops all that is kept.
func (q *Queue) Forget() {
	q.again.whole = false
	for i := range q.buffers.kept {
		q.buffers.kept[i].whole = false
	}
}
