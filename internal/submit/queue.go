package submit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"leat/internal/kernels"
	"leat/vk"
)

// Queue submits the commands of one step after another. Use it from one goroutine; any goroutine may call [Queue.Counters].
type Queue struct {
	Options
	Rec      *kernels.Recorder // records into the open command buffer
	Commands Commands          // commands of the current step
	Host     Host              // the host's waits and recording time

	pool     *vk.CommandPool // allocates command buffers
	buffers  buffers         // all command buffers, temporary and kept
	value    uint64          // timeline value of the last submission
	cost     estimator       // predicts how long work runs
	clock    clock           // measures how long work ran
	timer    *opTimer        // times each kernel; nil: Options.Ops is not set
	keptStep keptStep        // a whole step that can be submitted again
	count    counters        // read by Queue.Counters
	signal   [1]vk.Point     // scratch: what a submission signals
}

// Counters are totals since the queue was made.
type Counters struct {
	Submissions int64         // submissions to the compute queue
	WeightBytes int64         // bytes of weights that kernels read
	Compute     time.Duration // time that command buffers ran; an estimate if the device has no timestamps
	Record      time.Duration // time that the host spent recording and submitting
}

// counters has the totals that [Queue.Counters] returns, as atomics because any goroutine may read them; times are in nanoseconds.
type counters struct{ submissions, weights, compute, record atomic.Int64 }

// New makes a queue, with no command buffers yet. The caller closes it.
func New(o Options) (*Queue, error) {
	q := &Queue{Options: o, Rec: o.Kernels.Recorder(nil), cost: estimator{scale: 1, target: defaultTarget}}
	q.Commands.q, q.Host.q, q.clock.q = q, q, q
	if o.MaxSubmit > 0 {
		q.cost.target = o.MaxSubmit.Seconds()
	}
	q.clock.names = map[[2]int]string{}
	var err error
	if q.pool, err = o.Device.Compute.NewCommandPool(); err != nil {
		return nil, err
	}
	if q.clock.stamps, err = o.Device.NewQueryPool(2 * (o.KeptSlots + o.Stamps)); err != nil {
		q.Close()
		return nil, err
	}
	q.buffers.kept = make([]buffer, o.KeptSlots)
	if q.timer, err = newOpTimer(o.Device, o.Ops); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// Close frees what New made; the device must be idle. Safe to call twice.
func (q *Queue) Close() {
	if q.timer != nil {
		q.timer.stamps.Close()
	}
	if q.clock.stamps != nil {
		q.clock.stamps.Close()
	}
	if q.pool != nil {
		q.pool.Close()
	}
	q.timer, q.clock.stamps, q.pool = nil, nil, nil
}

// Counters returns the totals so far. Any goroutine may call it.
func (q *Queue) Counters() Counters {
	c := &q.count
	return Counters{c.submissions.Load(), c.weights.Load(), time.Duration(c.compute.Load()), time.Duration(c.record.Load())}
}

// Begin begins a step of the given number of rows, with no command buffer open. When ctx is done, the step ends before its next submission. From
// now on the host's time counts as recording, until it waits.
func (q *Queue) Begin(ctx context.Context, rows int) {
	c := &q.Commands
	*c = Commands{q: q, ctx: ctx, step: c.step + 1, rows: rows, part: NoPart, lastPart: NoPart, list: c.list[:0], pending: c.pending[:0], waits: c.waits[:0]}
	q.keptStep.repeating = false
	q.Host.Resume()
}

// Value is the value that the compute timeline reaches when the device has ended the last submission.
func (q *Queue) Value() uint64 { return q.value }

// End waits until the device has ended all of the step's submissions, and accounts for them.
func (q *Queue) End() error {
	if err := q.Host.awaitEnd(); err != nil {
		return fmt.Errorf("wait for the end of a step: %w", err)
	}
	return q.finish()
}

// ErrStopped is wrapped, together with the context's error, by the error of a step that ended because its context was done.
var ErrStopped = errors.New("the step was stopped")

// Abort ends a step that failed with err, or whose context is done, and returns why it ended. It waits for the submitted commands, accounts
// for them, and drops the others; after a failure it forgets all kept commands. It calls undo, with the timeline value that the device has
// reached, to undo the caller's part of the step. If the device is lost it only returns err.
func (q *Queue) Abort(err error, undo func(value uint64) error) error {
	if errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	ctx := q.Commands.ctx.Err()
	stopped := ctx != nil && errors.Is(err, ctx)
	if !stopped {
		q.ForgetKept() // some kept command buffers may be recorded in part
	}
	if b := q.Commands.open.buffer; b != nil && b.recording {
		b.recording = false
		_ = b.cb.End() // a command buffer that is being recorded can't be begun again
	}
	failed := q.Compute.Wait(context.Background(), q.value)
	if failed == nil {
		failed = undo(q.value)
	}
	if failed == nil {
		failed = q.finish()
	}
	switch {
	case failed != nil:
		return errors.Join(err, failed)
	case stopped:
		return fmt.Errorf("%w: %w", ErrStopped, ctx)
	}
	return err
}

// finish accounts for what is left of a step whose submissions have all ended, for [Queue.End] and [Queue.Abort].
func (q *Queue) finish() error {
	end := time.Now()
	if err := q.account(); err != nil {
		return err
	}
	if c := &q.Commands; q.Device.Compute.TimestampBits == 0 && c.done.sent > 0 {
		q.clock.accountStep(c.list[:c.done.sent], end)
	}
	if q.timer != nil {
		return q.timer.finish()
	}
	return nil
}

// account collects uploads, by Options.Collect, and accounts for the jobs submitted since the last call. All of them must have ended.
func (q *Queue) account() error {
	if err := q.Collect(); err != nil {
		return err
	}
	c := &q.Commands
	from := c.done.accounted
	c.done.accounted = c.done.sent
	return q.clock.account(c.list[from:c.done.sent], from == 0)
}

// send submits command buffers as one submission, which runs when the device has reached the points waits, and counts it.
func (q *Queue) send(commands []*vk.CommandBuffer, waits []vk.Point) error {
	q.signal[0] = vk.Point{Timeline: q.Compute, Value: q.value + 1}
	if err := q.Device.Compute.Submit(vk.Submission{Commands: commands, Waits: waits, Signals: q.signal[:]}); err != nil {
		return err
	}
	q.value++
	q.count.submissions.Add(1)
	return nil
}
