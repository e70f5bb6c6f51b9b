package submit

import (
	"time"

	"leat/internal/kernels"
	"leat/internal/pace"
	"leat/internal/trace"
	"leat/vk"
	"leat/vk/limit"
)

// Options configure a [Queue]. Device, Kernels, Compute, Configure and Collect must be set, and Name if Trace is.
type Options struct {
	Device  *vk.Device       // commands go to its compute queue
	Kernels *kernels.Kernels // pipelines for the recorder
	Compute *vk.Timeline     // signalled by every submission, with the values 1, 2, 3 …

	MaxSubmit time.Duration   // longest that a submission should run; 0: a quarter of a second
	KeptSlots int             // number of slots for kept command buffers, see [Commands.OpenKept]
	Stamps    int             // number of temporary command buffers of a step that have timestamps; later ones have none
	Poll      bool            // poll the device before sleeping where delay costs most; not for a CPU device, which needs the cores itself
	Pacer     *pace.Pacer     // asks for rests between submissions; nil: no rests
	Trace     *trace.Recorder // nil: no trace
	Ops       *trace.Ops      // sums up the time of each kernel; nil: kernels are not timed
	ReadRate  *limit.Rate     // limits how fast kernels read weights in VRAM; nil: full speed

	// Configure configures the recorder, each time a command buffer is opened for recording; not for a kept one to be submitted again.
	Configure func(*kernels.Recorder)
	// Collect is called before timestamps are read: the caller accounts for its uploads, which Ran may ask for.
	Collect func() error
	// Ran is called for each timed command buffer that has run; on a device without timestamps, for each that the host waited for.
	// nil: not called.
	Ran func(*Ran)
	// Name returns the label, in traces, of work that begins with part from and ends with part to.
	Name func(from, to int) string
}

// NoPart is the number of no part. The caller numbers the parts of its work, such as the units of a plan.
const NoPart = -1

// Work is what a command buffer does, in the caller's terms: for traces, statistics and the pacer.
type Work struct {
	From, To    int           // first and last of the caller's parts in it; From is NoPart for inputs and outputs
	Rows        int           // number of rows of the step
	WeightBytes int64         // bytes of weights that its kernels read
	Awaits      int           // part whose bytes the device or the host waited for before it; NoPart: none
	Waited      time.Duration // time that the host waited for the bytes of Awaits
}

// Ran is a command buffer that has run, and when: the argument of [Options.Ran].
type Ran struct {
	*Work
	Cost        float64       // seconds that the work takes on the yardstick device, a weak one, see [estimator]
	Busy        time.Duration // time from its begin to its end; 0 if not Timed
	Idle        time.Duration // time the device was idle before it, without rests; 0 for the first of a step
	PreviousEnd uint64        // device timestamp of the end of the timed command buffer before it; 0: not known
	Timed       bool          // its time was measured by timestamps
}
