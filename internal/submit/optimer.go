package submit

import (
	"slices"

	"leat/internal/trace"
	"leat/vk"
)

// opTimer times each kernel of a step, with a timestamp after it. It slows steps down by some percent, so it
// is optional: see Options.Ops.
type opTimer struct {
	to        *trace.Ops    // the times are added to it
	stamps    *vk.QueryPool // timestamps, one after each kernel
	marks     []opMark      // one for each timestamp recorded in this step
	submitted int           // how many of marks are submitted
	ticks     []uint64      // scratch: timestamps, as read
}

// opMark is the kernel that ended at a timestamp, and the estimate of its cost.
type opMark struct {
	name         string  // name of the op; "": no kernel ended, a command buffer begins
	bytes, flops float64 // bytes read and written, and operations
}

const (
	mostMarks = 1 << 14                 // timestamps per step; later kernels are not timed
	between   = "(between submissions)" // name under which the gaps between command buffers are summed up
)

// newOpTimer makes a timer that adds to ops. It returns nil if ops is nil or the device has no timestamps.
func newOpTimer(dev *vk.Device, ops *trace.Ops) (t *opTimer, err error) {
	if ops == nil || dev.Compute.TimestampBits == 0 {
		return nil, nil
	}
	t = &opTimer{to: ops}
	if t.stamps, err = dev.NewQueryPool(mostMarks); err != nil {
		return nil, err
	}
	return t, nil
}

// begin records a timestamp at the start of a command buffer. The first one of a step resets all timestamps.
func (t *opTimer) begin(cb *vk.CommandBuffer, first bool) {
	if first {
		t.marks, t.submitted = t.marks[:0], 0
		cb.ResetQueries(t.stamps, 0, t.stamps.Count)
	}
	t.mark(cb, opMark{})
}

// mark records a timestamp after the commands recorded so far.
func (t *opTimer) mark(cb *vk.CommandBuffer, m opMark) {
	if len(t.marks) < t.stamps.Count {
		cb.WriteTimestamp(t.stamps, len(t.marks))
		t.marks = append(t.marks, m)
	}
}

// finish reads the timestamps of a step that has ended, and adds the time of each kernel, and of the gaps between submissions, to trace.Ops.
func (t *opTimer) finish() error {
	t.ticks = slices.Grow(t.ticks[:0], t.submitted)[:t.submitted]
	if err := t.stamps.Read(0, t.ticks); err != nil {
		return err
	}
	for i := 1; i < t.submitted; i++ {
		m, d := t.marks[i], t.stamps.Duration(t.ticks[i-1], t.ticks[i])
		if m.name == "" {
			m.name = between
		}
		t.to.Add(m.name, m.bytes, m.flops, d)
	}
	t.to.Step()
	return nil
}
