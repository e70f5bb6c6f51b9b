package submit

import "leat/internal/kernels"

// Cut submits the open command buffer and opens a temporary one, unless the open one has no work, nothing to wait for, and is not the step's first.
// In either case a kept command buffer that was cut is not submitted again in later steps. Cut does nothing if the open command buffer is untimed,
// see [Commands.OpenKept].
func (c *Commands) Cut() error {
	if c.open.buffer.untimed {
		return nil
	}
	c.cuts++
	c.open.cut = true
	if bytes, flops := c.q.Rec.Cost(); bytes == 0 && flops == 0 && len(c.waits) == 0 && c.done.sent > 0 {
		return nil
	}
	if err := c.Submit(); err != nil {
		return err
	}
	return c.Open()
}

// rowGroup divides the number of rows in each run but the last: arrays of uint32 then begin on 16 bytes, and kernels of few rows are full.
const rowGroup = 8

// ByRows calls do, which records work for n rows from row from on, for n rows in as few runs as keep each submission short. It cuts when a
// submission is full, and may then wait to learn how fast the device is. An untimed command buffer gets all rows in one run.
func (c *Commands) ByRows(n uint32, flopsPerRow float64, do func(from, n uint32) error) error {
	q := c.q
	if c.open.buffer.untimed {
		return do(0, n)
	}
	for from := uint32(0); from < n; {
		bytes, flops := q.Rec.Cost()
		run := q.cost.rows(bytes, flops, flopsPerRow, n-from)
		if run == 0 || run < n-from && q.cost.rows(0, 0, flopsPerRow, n-from) == n-from { // each run reads the weights
			if err := c.Cut(); err != nil {
				return err
			}
			if err := q.learnSpeed(); err != nil {
				return err
			}
			run = q.cost.rows(0, 0, flopsPerRow, n-from)
		}
		run = min(max(run, kernels.LeastRows(q.Rec), rowGroup), n-from)
		if err := do(from, run); err != nil {
			return err
		}
		from += run
	}
	return nil
}

// learnSpeed waits for the submitted work and learns from it how fast the device is, unless the estimator knows that or the device has no
// timestamps. So the first steps of a fast device are not split into many runs.
func (q *Queue) learnSpeed() error {
	c := &q.Commands
	if q.cost.known() || c.done.accounted == c.done.sent || q.Device.Compute.TimestampBits == 0 {
		return nil
	}
	if err := q.Host.Await(q.value); err != nil {
		return err
	}
	return q.account()
}

// NewDryCommands makes Commands without a queue, for a dry recorder, which dispatches nothing: ByRows records all rows in one run, and nothing is
// ever submitted.
func NewDryCommands() *Commands { return &Commands{open: job{buffer: &buffer{untimed: true}}} }
