package submit

import (
	"fmt"
	"time"
)

const (
	mostBehind  = 500 * time.Millisecond // estimated time of the work that may be submitted and not finished
	leastBehind = 2                      // command buffers that may be submitted and not finished, however long they run
)

// ready waits until the next submission may be made: after the pacer's rest, when the device has little work left, and when ReadRate, if
// set, allows the weights of the last enqueued command buffer to be read. It fails if the step's context is done.
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

// keepUp waits while the device has more than mostBehind of work left, and more than leastBehind command buffers. A submission can't be
// cancelled, so this limits how long a stopped step goes on. It fails if the step's context is done.
func (q *Queue) keepUp() error {
	c, d := &q.Commands, &q.Commands.done
	if err := c.ctx.Err(); err != nil {
		return err
	}
	for d.sent-d.ended > leastBehind && d.behind*q.cost.scale > mostBehind.Seconds() {
		one := &c.list[d.ended]
		if err := q.Host.Await(one.value); err != nil {
			return err
		}
		d.behind -= base(one.bytes, one.flops)
		d.ended++
	}
	return nil
}

// rest inserts a rest before a submission if the pacer wants one: it waits until the device has finished its work, accounts for that, and
// leaves the device idle for as long as the pacer says. The commands of the next submission are recorded already.
func (q *Queue) rest() error {
	p, c := q.Pacer, &q.Commands
	if p == nil || c.done.accounted == c.done.sent || !p.Active() || !p.Due(q.expected()) {
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

// due reports whether the pacer will want a rest after the work recorded so far, so that it should be submitted now.
func (q *Queue) due() bool {
	p := q.Pacer
	if p == nil || !p.Active() {
		return false
	}
	return p.Due(q.expected() + seconds(q.cost.seconds(q.Rec.Cost())))
}

// expected is the estimated time of the submitted jobs that are not accounted for, ended or not. The pacer does not know of them yet.
func (q *Queue) expected() time.Duration {
	c, sum := &q.Commands, 0.0
	for i := c.done.accounted; i < c.done.sent; i++ {
		sum += q.cost.seconds(c.list[i].bytes, c.list[i].flops)
	}
	return seconds(sum)
}

// seconds converts seconds to a Duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
