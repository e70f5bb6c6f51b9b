package submit

import (
	"time"

	"leat/internal/kernels"
	"leat/internal/pace"
	"leat/internal/trace"
	"leat/vk"
	"leat/vk/limit"
)

// Options are what a [Queue] is built from. Device, Kernels and Compute are needed.
type Options struct {
	Device  *vk.Device
	Kernels *kernels.Kernels
	Compute *vk.Timeline // signalled by every submission, with the values 1, 2, 3 …

	MaxSubmit time.Duration   // longest a submission should run; 0: a quarter of a second
	Kept      int             // command buffers that may be kept, see [Commands.OpenKept]
	Stamps    int             // command buffers of a step that have timestamps, beside those kept
	Listen    bool            // poll the device where the host has to answer at once; a CPU device needs the cores itself
	Pacer     *pace.Pacer     // asks for rests between submissions; nil: none
	Trace     *trace.Recorder // nil: no trace
	Ops       *trace.Ops      // sums up the time of each kernel; nil: none
	ReadRate  *limit.Rate     // slows the reading of weights in VRAM down; nil: full speed

	// Configure sets what the recorder needs, whenever a command buffer is opened.
	Configure func(*kernels.Recorder)
	// Collect is called before timestamps are read: the caller accounts for its uploads, which Ran may ask for.
	Collect func() error
	// Ran is told of each submission once it has run; nil: no one is.
	Ran func(*Ran)
	// Name returns the label, in traces, of work that begins with one part and ends with another.
	Name func(from, to int) string
}

// The caller numbers the parts of its work, as the units of a plan. Nothing stands for no part: as Work.From for inputs and outputs, as Work.Awaits for no bytes.
const Nothing = -1

// Work is what a submission does, in its caller's terms.
type Work struct {
	From, To    int           // parts of the caller's work that it begins and ends with; Nothing: none
	Rows        int           // of the step
	WeightBytes int64         // that its kernels read
	Awaits      int           // part whose bytes the device or the host waited for before it; Nothing: none
	Waited      time.Duration // by the host, for those bytes
}

// Ran is a submission that has run.
type Ran struct {
	*Work
	Cost   float64       // seconds on the yardstick device, see estimator
	Busy   time.Duration // from its begin to its end; an estimate where Timed is false
	Idle   time.Duration // from the end of the submission before, less rests; 0 for the first of a step
	Before uint64        // the device's time when the submission before ended; 0: not known
	Timed  bool          // by timestamps
}
