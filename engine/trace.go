package engine

import (
	"io"

	"leat/internal/trace"
)

// Trace keeps when the disk, the link, the device and the host were busy while a model ran, if [Tuning] names it. Its methods may be called by
// several goroutines, and by nothing that comes after the model: a trace of one model is of no use to another.
type Trace struct {
	spans *trace.Recorder
	ops   *trace.Ops // nil: the device's time is not summed up by kernel
}

// NewTrace makes a trace of at most maxSpans pieces of work, and takes the memory for them at once. It keeps nothing until [Trace.Start].
func NewTrace(maxSpans int) *Trace { return &Trace{spans: trace.New(maxSpans)} }

// Start begins to keep what is done.
func (t *Trace) Start() { t.spans.Start() }

// Stop ends what [Trace.Start] began.
func (t *Trace) Stop() { t.spans.Stop() }

// Dropped is how many pieces of work found no room.
func (t *Trace) Dropped() int { return t.spans.Dropped() }

// WriteTimeline writes what was kept as a timeline called title for ui.perfetto.dev.
func (t *Trace) WriteTimeline(w io.Writer, title string) error {
	return trace.WritePerfetto(w, title, t.spans.Spans())
}

func (t *Trace) recorder() *trace.Recorder {
	if t == nil {
		return nil
	}
	return t.spans
}

func (t *Trace) kernels() *trace.Ops {
	if t == nil {
		return nil
	}
	return t.ops
}
