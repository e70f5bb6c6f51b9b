package submit

import (
	"slices"

	"leat/internal/trace"
	"leat/vk"
)

// opTimer times each kernel of a step, by a timestamp behind it. It costs some percent of the
// time, and is there only when somebody asks.
type opTimer struct {
	to        *trace.Ops
	stamps    *vk.QueryPool
	marks     []opMark // one for each timestamp written in this step
	submitted int      // of those
	ticks     []uint64
}

// opMark says what ended at a timestamp.
type opMark struct {
	name         string // "": nothing, a command buffer begins
	bytes, flops float64
}

const (
	mostMarks = 1 << 14 // of a step; what comes after is not timed
	between   = "(between submissions)"
)

// newOpTimer makes one that adds to ops; nil where no one asks, or the device has no timestamps.
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

// begin is called when a command buffer has begun, the step's first or a later one.
func (t *opTimer) begin(cb *vk.CommandBuffer, first bool) {
	if first {
		t.marks, t.submitted = t.marks[:0], 0
		cb.ResetQueries(t.stamps, 0, t.stamps.Count)
	}
	t.mark(cb, opMark{})
}

func (t *opTimer) mark(cb *vk.CommandBuffer, m opMark) {
	if len(t.marks) < t.stamps.Count {
		cb.WriteTimestamp(t.stamps, len(t.marks))
		t.marks = append(t.marks, m)
	}
}

// finish tells of the kernels of a step that is over.
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
