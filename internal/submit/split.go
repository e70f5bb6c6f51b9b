package submit

import "leat/internal/kernels"

// Cut submits what is recorded, if anything, and goes on in a new command buffer. An untimed one, see [Commands.OpenKept], is never cut: it
// would not be whole when it is submitted again.
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

// rowGroup is what rows are split in multiples of: arrays of uint32 then begin on 16 bytes, and kernels of few rows get as many as they take.
const rowGroup = 8

// ByRows runs do over n rows in as few runs as keep each submission short.
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
			if err := q.measure(); err != nil {
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

// measure waits for what is submitted, to learn how fast the device is, where nothing is known of it yet: a fast one need not do its first
// steps in many runs.
func (q *Queue) measure() error {
	c := &q.Commands
	if q.cost.known() || c.done.told == c.done.sent || q.Device.Compute.TimestampBits == 0 {
		return nil
	}
	if err := q.Host.Await(q.value); err != nil {
		return err
	}
	return q.account()
}

// Uncut are commands that are never cut nor submitted: rows are recorded all at once.
func Uncut() *Commands { return &Commands{open: submission{buffer: &buffer{untimed: true}}} }
