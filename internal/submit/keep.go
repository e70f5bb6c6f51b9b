package submit

import (
	"fmt"
	"time"

	"leat/vk"
)

// keptStep is a whole step that can be submitted again as it is, the last one that [Queue.KeepStep] kept. Decoding one token with all weights
// in VRAM needs the same commands as the next token: only the inputs differ, and those are in memory.
type keptStep struct {
	reusable  bool                // the step may be submitted again
	repeating bool                // the current step repeats the kept step
	list      []job               // its jobs
	cbs       []*vk.CommandBuffer // the command buffers of list
	took      time.Duration       // time from submission to end of the last repetition, measured by the host; 0: not repeated yet
}

// KeepStep keeps the commands of the step just submitted, for [Queue.Repeat], until [Commands.Open] overwrites a command buffer. It does
// nothing for a step that waited for bytes, or for a long one: Repeat makes one submission, which the end of the step's context can't stop.
func (q *Queue) KeepStep() {
	c, a := &q.Commands, &q.keptStep
	var work float64
	for i := range c.list {
		if c.list[i].Awaits != NoPart {
			return
		}
		work += base(c.list[i].bytes, c.list[i].flops)
	}
	if work*q.cost.scale > mostBehind.Seconds() {
		return
	}
	a.reusable, a.took = true, 0
	a.list, a.cbs = append(a.list[:0], c.list...), a.cbs[:0]
	for i := range c.list {
		a.cbs = append(a.cbs, c.list[i].buffer.cb)
	}
}

// CanRepeat reports whether [Queue.Repeat] has a step to submit again.
func (q *Queue) CanRepeat() bool { return q.keptStep.reusable }

// Repeat submits the commands of the kept step as the current step, in one submission. The caller has written the step's inputs.
func (q *Queue) Repeat() error {
	c, a := &q.Commands, &q.keptStep
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
	c.done.sent, a.repeating = len(c.list), true
	return nil
}

// ForgetKept drops the kept step and the contents of all kept command buffers: later steps record anew.
func (q *Queue) ForgetKept() {
	q.keptStep.reusable = false
	for i := range q.buffers.kept {
		q.buffers.kept[i].reusable = false
	}
}
