package step

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"leat/decompose/pack"
	"leat/gguf/quant"
	"leat/internal/arch"
	"leat/internal/experts"
	"leat/internal/kernels"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/submit"
	"leat/internal/trace"
	"leat/internal/weights"
	"leat/vk"
	"leat/vk/limit"
	"leat/vk/mem"
)

// Options are what a [Stepper] is built from; all fields down to Logger are needed.
type Options struct {
	Device  *vk.Device       // the device that runs the steps
	Kernels *kernels.Kernels // pipelines of the device
	VRAM    *mem.Heap        // memory for the scratch
	Host    *mem.Heap        // host memory for inputs and logits
	Model   *pack.Model      // tensors and their units
	Hyper   *arch.Hyper      // hyperparameters of the model
	Plan    *plan.Plan       // says which units are resident, streamed or in slots, and has the layout of the scratch
	Weights *weights.Store   // brings units and experts to VRAM
	Compute *vk.Timeline     // timeline semaphore; each submission signals the next of the values 1, 2, 3 …
	Logger  *slog.Logger     // gets the warnings of package experts

	MaxSubmit time.Duration   // longest time that a submission should run; 0: a quarter of a second
	Pacer     *pace.Pacer     // asks for rests between submissions to keep the device cool; nil: no rests
	Trace     *trace.Recorder // gets spans of the device's and the host's work; nil: no trace
	Ops       *trace.Ops      // sums up the time of each kernel; nil: kernels are not timed
	ReadRate  *limit.Rate     // limits the bytes of weights read from VRAM per second, to imitate slower memory; nil: full speed
	Poll      bool            // poll the device before sleeping where a delay costs most; false for a CPU device, which needs the cores itself
	EveryRow  bool            // compute the whole last layer for all rows, also for those whose logits are not needed

	// Ran is called for each timed command buffer that read only resident weights and has run, with the step's rows, an estimate of its cost,
	// to compare with other costs, and the time that the device was busy. nil: not called.
	Ran func(rows int, cost float64, busy time.Duration)

	// ConditionalBelow is the miss rate of layers below which layers run conditionally, without asking the host, see [experts.Options].
	ConditionalBelow float64
	// MergeExperts runs a layer's resident and uploaded experts in one wave, see [experts.Options].
	MergeExperts bool
	// Routed is called after each step with the experts that each row used, see [experts.Options]; nil: not called.
	Routed func(rows int, ids []uint16) error
}

// Stepper runs steps on one device, one at a time. One goroutine uses it; [Stepper.Counters] may be called by any.
type Stepper struct {
	Options
	queue   *submit.Queue  // submits the step's command buffers to the device
	experts experts.Runner // runs the experts of layers
	frame   record.Frame   // records operations for the rows that the step computes
	model   record.Model   // hyperparameters, scratch and KV cache, for recording
	scratch *vk.Buffer     // VRAM for inputs, activations and logits, laid out by the plan
	in, out *vk.Buffer     // host memory, mapped: in for a step's inputs, out for its logits or their argmax
	ops     stepOps        // operations of a step
	bases   []uint64       // device address of each unit in the step under way
	inputs  inputs         // memory for the inputs of the step under way
	pass    pass           // the step under way
	kept    keptKey        // key of the step whose commands the queue keeps
	results Result         // memory for the result of a step
	count   counters       // what the stepper has done, for Counters
}

// pass is the step under way.
type pass struct {
	s         *Stepper // the stepper whose step this is
	rows      []Row    // rows that the step computes at this point: all of its rows or, after keepLogitRows, only those whose logits are needed
	logitRows []int    // indices of the step's rows that need logits
	gathered  []Row    // memory for the rows that keepLogitRows gathers
	want      Want     // Step's argument: what is copied to the host
	unitIndex int      // index of the unit that is being recorded; submit.NoPart: none

	// keepSegments says that the step's command buffers are kept in segments, split where the host reads a router's choice: this step records them,
	// or submits those of an earlier step. It does not cut them between units.
	keepSegments bool
}

// stepOps is the operations of a step.
type stepOps struct {
	units  [][]arch.Op // of each unit of the plan
	input  []arch.Op   // on the embeddings of the step's tokens
	output []arch.Op   // from the last layer's rows whose logits are wanted to what the head multiplies
	logits []arch.Op   // on the logits
}

// Want is what a step computes of its logit rows, those with Row.Logits.
type Want int

// What a step can compute.
const (
	WantLogits Want = iota // logits
	WantArgmax             // only the id with the greatest logit
	WantHidden             // the hidden states that logits would be computed from: the only output of an encoder
)

// Result is a step's output, of its logit rows in order; its slices belong to the Stepper until the next step. Only the one that the step was to compute is not nil.
type Result struct {
	Logits []float32 // (logit rows, V) logits
	IDs    []int32   // (logit rows) argmax of the logits
	Hidden []float32 // (logit rows, D) hidden states
}

// Counters are what a Stepper has done since it was made, with the counters of its queue.
type Counters struct {
	submit.Counters
	Steps, Rows int64         // steps that the device has computed, and their rows
	Stalled     time.Duration // time within steps that the device was idle because weights were not in VRAM yet
}

// counters has the counts that [Stepper.Counters] returns; stalled is in nanoseconds.
type counters struct{ steps, rows, stalled atomic.Int64 }

// Counters reads the stepper's counters and its queue's. Any goroutine may call it.
func (s *Stepper) Counters() Counters {
	c := &s.count
	return Counters{s.queue.Counters(), c.steps.Load(), c.rows.Load(), time.Duration(c.stalled.Load())}
}

// leastStamps is the least number of a step's command buffers that can have timestamps. A step has one for each streamed unit, and more if the rows of a
// prompt are split, also in a model with few units.
const leastStamps = 256

// New allocates the scratch and the inputs, and makes the queue and the runner of experts. After an error it has freed everything.
func New(o Options) (*Stepper, error) {
	s := &Stepper{Options: o, bases: make([]uint64, len(o.Plan.Units))}
	for i := range o.Hyper.Ropes {
		s.inputs.ropes = append(s.inputs.ropes, ropeTable{freqs: o.Hyper.Ropes[i].Freqs(o.Plan.ContextLength)})
	}
	s.ops = stepOps{input: o.Hyper.Input(o.Model.Has), output: o.Hyper.Output(o.Model.Has), logits: o.Hyper.LogitOps(o.Model.Has)}
	for i, of := range arch.Tables(o.Hyper) {
		t, _, _ := o.Model.Tensor(of.Name)
		s.inputs.tables = append(s.inputs.tables, tokenTable{of.Dst, t.Type, o.Plan.Tables[i].RowBytes})
	}
	var err error
	if s.ops.units, err = unitOps(o.Plan.Units, func(l int) []arch.Op { return o.Hyper.Layer(l, o.Model.Has) }); err != nil {
		return nil, err
	}
	for _, make := range []func() error{s.allocate, s.makeQueue, s.makeExperts} {
		if err := make(); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// allocate allocates the scratch in VRAM, and the inputs and outputs in host memory. After an error New calls Close.
func (s *Stepper) allocate() (err error) {
	of := &s.Plan.Scratch
	if s.scratch, err = s.VRAM.Alloc("scratch", of.Bytes, vk.DeviceLocal); err != nil {
		return err
	}
	if s.in, err = s.Host.Alloc("step inputs", experts.InputBytes(s.Plan, s.Hyper), vk.Upload); err != nil {
		return err
	}
	putSlopes(s.in, of.Slopes, s.Hyper.Slopes())
	if of.Grids.Bytes > 0 {
		copy(s.in.Mapped()[of.Grids.Off:], quant.Grids())
	}
	s.out, err = s.Host.Alloc("outputs", max(of.Logits.Bytes+of.Argmax.Bytes, of.Head.Bytes), vk.Readback)
	return err
}

// makeQueue makes the queue, and the frame that records into its commands.
func (s *Stepper) makeQueue() (err error) {
	s.queue, err = submit.New(submit.Options{
		Device: s.Device, Kernels: s.Kernels, Compute: s.Compute, MaxSubmit: s.MaxSubmit, KeptSlots: experts.KeptBuffers(s.Plan, s.Hyper),
		Stamps: max(leastStamps, 2*len(s.Plan.Units)), Poll: s.Poll, Pacer: s.Pacer, Trace: s.Trace, Ops: s.Ops, ReadRate: s.ReadRate,
		Configure: s.configure, Collect: s.Weights.Collect, Ran: s.ran, Name: s.name,
	})
	if err != nil {
		return err
	}
	s.model = record.Model{Hyper: s.Hyper, Scratch: &s.Plan.Scratch, KV: &s.Plan.KV, KVType: s.Plan.KV.Type, Base: s.scratch.Address}
	s.frame = record.Frame{Model: &s.model, Commands: &s.queue.Commands, Rec: s.queue.Rec, Tensor: s.pass.tensor}
	return nil
}

// makeExperts makes the runner that fits the plan, also for a model without experts.
func (s *Stepper) makeExperts() (err error) {
	s.experts, err = experts.New(experts.Options{
		Device: s.Device, Queue: s.queue, Frame: &s.frame, Weights: s.Weights, Host: s.Host, Scratch: s.scratch, Inputs: s.in, Plan: s.Plan, Ops: s.ops.units,
		Logger: s.Logger, ConditionalBelow: s.ConditionalBelow, Merge: s.MergeExperts, Routed: s.Routed,
	}, s.bases)
	return err
}

// CanRunConditionally reports whether layers can run conditionally, without asking the host which experts are in VRAM.
func (s *Stepper) CanRunConditionally() bool { return s.experts.CanRunConditionally() }

// SetConditionalBelow sets [Options.ConditionalBelow], the miss rate below which layers run conditionally. Call it between two steps.
func (s *Stepper) SetConditionalBelow(below float64) { s.experts.SetConditionalBelow(below) }

// Replan switches to plan p between two steps. p may differ from the plan in use only in where units and experts are kept. The next step drops kept
// command buffers, because its [keptKey] differs.
func (s *Stepper) Replan(p *plan.Plan) {
	s.Plan, s.model.Scratch, s.model.KV = p, &p.Scratch, &p.KV
	s.experts.Replan(p)
}

// Close frees what New made; the device must be idle. Safe to call twice.
func (s *Stepper) Close() {
	if s.experts != nil {
		s.experts.Close()
	}
	if s.queue != nil {
		s.queue.Close()
	}
	for _, b := range []*vk.Buffer{s.in, s.out} {
		if b != nil {
			s.Host.Free(b)
		}
	}
	if s.scratch != nil {
		s.VRAM.Free(s.scratch)
	}
	s.in, s.out, s.scratch = nil, nil, nil
}

// ErrStopped is wrapped, together with the context's error, by the error of a step that ended because its context was done.
var ErrStopped = submit.ErrStopped

// Step runs rows through the model, waits for the device, and returns what is wanted of the rows with Row.Logits.
// Canceling ctx ends the step between two submissions with [ErrStopped]. The caller that cancels ctx must then call [weights.Store.Wake], in case the
// step waits for weights. After an error the sequences are as if the step had not begun, unless the device is lost.
func (s *Stepper) Step(ctx context.Context, rows []Row, want Want) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrStopped, err)
	}
	logitRows, err := s.check(rows, s.pass.logitRows[:0])
	if err == nil && s.Hyper.Encoder && want != WantHidden {
		err = fmt.Errorf("step: %s has no logits", s.Hyper.Architecture)
	}
	if err != nil {
		return Result{}, err
	}
	s.begin(ctx, rows, logitRows, want)
	if s.Pacer != nil {
		s.Pacer.Begin()
		defer s.Pacer.End()
	}
	if err := s.pass.run(); err != nil {
		return Result{}, fmt.Errorf("step of %d rows: %w", len(rows), s.queue.Abort(err, s.dropStep))
	}
	if err := s.queue.End(); err != nil {
		return Result{}, err
	}
	if err := s.experts.Over(); err != nil {
		return Result{}, err
	}
	s.count.steps.Add(1)
	s.count.rows.Add(int64(len(rows)))
	return s.read(rows)
}

// begin sets up the pass, the frame and the queue for a step of rows. Nothing is recorded yet.
func (s *Stepper) begin(ctx context.Context, rows []Row, logitRows []int, want Want) {
	s.pass = pass{s: s, rows: rows, logitRows: logitRows, gathered: s.pass.gathered[:0], want: want, unitIndex: submit.NoPart}
	f := &s.frame
	f.StepRows.Spans, f.StepRows.N, f.StepRows.OnlyLogitRows = spans(f.StepRows.Spans[:0], rows, nil), len(rows), false
	f.SetRows(f.StepRows.Spans[0])
	f.Batch.Sequences, f.Batch.MaxPages = s.inputs.sequences(rows)
	f.Batch.OnlyLogitRows = !s.EveryRow && !s.Hyper.Encoder && s.Routed == nil && len(rows) > 1 && len(logitRows) < len(rows)
	s.queue.Begin(ctx, len(rows))
}

// dropStep drops the units and experts that were brought for a step that failed or was stopped. [submit.Queue.Abort] calls it when the device
// has done the step's submissions: the compute timeline has reached value, which the last submission signals.
func (s *Stepper) dropStep(value uint64) error {
	s.experts.Abort()
	return s.Weights.Abort(value)
}

// configure tells the recorder about the rows that are recorded and the memory that kernels share. It is [submit.Options.Configure].
func (s *Stepper) configure(rec *kernels.Recorder) {
	f, of := &s.frame, &s.Plan.Scratch
	rec.Rows.Role, rec.Rows.Run, rec.Rows.Absent = f.Rows.Role, f.Rows.OneRun, f.Absent
	rec.Memory.Tiles, rec.Memory.Q8, rec.Memory.Parts, rec.Memory.Counters = f.Memory(of.Halves), f.Memory(of.Q8), f.Memory(of.Parts), f.Memory(of.Counters)
	rec.Memory.Grids = f.Memory(of.Grids)
}

// ran is [submit.Options.Ran]. For a command buffer that has run, it counts the time that the device was idle before it because weights were not in VRAM yet,
// and tells the runner of experts. It calls Options.Ran if all weights that the command buffer read are resident.
func (s *Stepper) ran(r *submit.Ran) {
	if r.Awaits != submit.NoPart && (r.PreviousEnd > 0 || !r.Timed) {
		if r.Timed && s.Plan.InPlace { // there are no uploads: the host waits for reads
			r.Idle = min(r.Idle, r.Waited)
		} else if r.Timed {
			if late, ok := s.Weights.Late(r.Awaits, r.PreviousEnd); ok {
				r.Idle = min(r.Idle, late) // idle only as long as the bytes were late; the rest was the host's time
			}
		}
		s.count.stalled.Add(int64(max(0, r.Idle)))
		s.experts.Ran(r)
	}
	if s.Ran != nil && r.Timed && r.From != submit.NoPart && s.Plan.Units[r.To].Resident() { // a streamed unit is always the last in its command buffer
		s.Ran(r.Rows, r.Cost, r.Busy)
	}
}

// name is the label, in traces, of work on the units of the plan from one index to another. It is [submit.Options.Name].
func (s *Stepper) name(from, to int) string {
	if from == to {
		return s.Plan.Units[to].Name
	}
	return fmt.Sprintf("%s to %s", s.Plan.Units[from].Name, s.Plan.Units[to].Name)
}
