package submit

import (
	"fmt"
	"time"
)

const (
	mostBehind  = 500 * time.Millisecond // of work that the device may be behind
	leastBehind = 2                      // submissions that it may always be
)

// ready waits until the next submission may go: the device has rested as the pacer wants, is not too far behind, and has read the last
// submission's weights where that is slowed down.
func (q *Queue) ready() error {
	if err := q.rest(); err != nil {
		return err
	}
	if err := q.keepUp(); err != nil || q.ReadRate == nil {
		return err
	}
	c := &q.Commands
	q.Host.Pause()
	defer q.Host.Resume()
	return q.ReadRate.Wait(c.ctx, c.list[len(c.list)-1].WeightBytes)
}

// keepUp waits while the device has much to do. What is submitted can't be taken back, so this is how long a step goes on that is
// stopped.
func (q *Queue) keepUp() error {
	c, d := &q.Commands, &q.Commands.done
	if err := c.ctx.Err(); err != nil {
		return err
	}
	for d.sent-d.over > leastBehind && d.behind*q.cost.scale > mostBehind.Seconds() {
		one := &c.list[d.over]
		if err := q.Host.Await(one.value); err != nil {
			return err
		}
		d.behind -= base(one.bytes, one.flops)
		d.over++
	}
	return nil
}

// rest comes before a submission. Where the pacer wants a rest, the device finishes what it has, and stays idle for as long as the pacer
// says; what comes next is recorded already.
func (q *Queue) rest() error {
	p, c := q.Pacer, &q.Commands
	if p == nil || c.done.told == c.done.sent || !p.Active() || !p.Due(q.expected()) {
		return nil
	}
	q.Host.Pause()
	defer q.Host.Resume()
	if err := q.Compute.Wait(c.ctx, q.value); err != nil {
		return fmt.Errorf("wait for the device to rest: %w", err)
	}
	if err := q.account(); err != nil {
		return err
	}
	c.list[c.done.sent].rested = p.Rest(c.ctx)
	return nil
}

// due says whether to submit what is recorded, because it has earned a rest.
func (q *Queue) due() bool {
	p := q.Pacer
	if p == nil || !p.Active() {
		return false
	}
	return p.Due(q.expected() + seconds(q.cost.seconds(q.Rec.Cost())))
}

// expected is how long the submissions that were not accounted for yet should run.
func (q *Queue) expected() time.Duration {
	c, sum := &q.Commands, 0.0
	for i := c.done.told; i < c.done.sent; i++ {
		sum += q.cost.seconds(c.list[i].bytes, c.list[i].flops)
	}
	return seconds(sum)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
