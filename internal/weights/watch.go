package weights

import (
	"sync/atomic"
	"time"

	"leat/internal/plan"
	"leat/internal/trace"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/xfer"
)

// watch is told of all reads and uploads when they have ended: it traces them, and knows when each unit's bytes came.
type watch struct {
	trace *trace.Recorder    // gets the traces; nil: nothing is traced
	clock *vk.Clock          // compares timestamps
	units []plan.Unit        // units of the plan, for their names
	ended [][2]atomic.Uint64 // for each unit, in even and in odd steps: device timestamp at which its last upload ended; 0: none has
}

// newWatch makes a watch for the units of the first plan: their names and number stay.
func newWatch(o *Options) watch {
	return watch{trace: o.Trace, clock: o.Device.Clock, units: o.Plan.Units, ended: make([][2]atomic.Uint64, len(o.Plan.Units))}
}

// tagOf is the tag of a read or an upload: the unit and the step that the bytes are for. Step 0: they are kept for all steps.
func tagOf(step, unit int) uint64 { return uint64(step)<<32 | uint64(unit) }

// traceSpan traces a read or an upload that has the tag. track is the reader or the queue.
func (w *watch) traceSpan(lane trace.Lane, track int, tag uint64, bytes int64, begin, end time.Time) {
	unit, step := uint32(tag), int(tag>>32)
	w.trace.Add(trace.Span{Lane: lane, Track: track, Name: w.units[unit].Name, Step: step, Bytes: bytes}, begin, end)
}

// readEnded returns a function that traces a read, to be called with each read that has ended; nil: nothing is traced.
func (w *watch) readEnded() func(file.Done) {
	if w.trace == nil {
		return nil
	}
	return func(d file.Done) { w.traceSpan(trace.Disk, d.Reader, d.Tag, d.Bytes, d.Begin, d.End) }
}

// uploadEnded traces an upload that has ended, and notes the time for [Store.Late]. [xfer.Uploader.Collect] calls it.
func (w *watch) uploadEnded(d *xfer.Done) {
	unit, step := uint32(d.Tag), d.Tag>>32
	if end := &w.ended[unit][step%2]; end.Load() == 0 || w.clock.Between(end.Load(), d.Ticks) > 0 {
		end.Store(d.Ticks)
	}
	if w.trace != nil {
		begin, end := d.Times()
		w.traceSpan(trace.Link, d.Lane, d.Tag, d.Bytes, begin, end)
	}
}

// late is how long after ticks, a timestamp of the device, the last upload of a unit for a step ended; false: no end of one is known.
func (w *watch) late(step, unit int, ticks uint64) (time.Duration, bool) {
	end := w.ended[unit][step%2].Load()
	return w.clock.Between(ticks, end), end != 0
}
