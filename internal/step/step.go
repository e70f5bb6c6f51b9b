package step

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"leat/decompose/pack"
	"leat/gguf"
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
	Device  *vk.Device
	Kernels *kernels.Kernels
	VRAM    *mem.Heap
	Host    *mem.Heap
	Model   *pack.Model
	Hyper   *arch.Hyper
	Plan    *plan.Plan
	Weights *weights.Store
	Compute *vk.Timeline // signalled by every submission, with the values 1, 2, 3 …
	KVType  gguf.Type    // one of shaders.KVTypes
	Logger  *slog.Logger

	MaxSubmit time.Duration   // longest a submission should run; 0: a quarter of a second
	Pacer     *pace.Pacer     // asks for rests between submissions; nil: none
	Trace     *trace.Recorder // nil: no trace
	Ops       *trace.Ops      // sums up the time of each kernel; nil: none
	ReadRate  *limit.Rate     // slows the reading of weights in VRAM down; nil: full speed
	Listen    bool            // poll the device where the host has to answer at once; a CPU device needs the cores itself
	EveryRow  bool            // the last layer computes rows whose logits no one wants, too

	// Ran is told of submissions that read resident weights only: the rows of the step, the cost in no unit, and how long the device was
	// busy; nil: no one is.
	Ran func(rows int, cost float64, busy time.Duration)

	// Of the layers' experts: see [experts.Options].
	ConditionalBelow float64
	MergeExperts     bool
	Routed           func(rows int, ids []uint16) error
}

// Stepper runs steps on one device, one at a time. One goroutine uses it; [Stepper.Counters] may be called by any.
type Stepper struct {
	Options
	queue   *submit.Queue
	experts experts.Runner
	frame   record.Frame
	model   record.Model
	scratch *vk.Buffer
	in, out *vk.Buffer  // host memory: a step's inputs, its logits
	ops     [][]arch.Op // by unit of the plan
	bases   []uint64    // where each unit lies in this step
	inputs  inputs
	pass    pass
	kept    keptKey
	results Result // memory for them
	count   counters
}

// pass is the step under way.
type pass struct {
	s      *Stepper
	rows   []Row // that the layer at hand has values of
	asked  []int // of the step's rows, those that want logits
	kept   []Row // memory for them
	greedy bool
	at     int  // unit of the plan that is recorded
	reuse  bool // the experts' command buffers are kept
}

// Result is a step's output; its slices belong to the Stepper until the next step.
type Result struct {
	Logits []float32 // (rows that asked, V); nil in a greedy step
	IDs    []int32   // (rows that asked) argmax; only in a greedy step
}

// Counters are what a Stepper has done since it was made.
type Counters struct {
	submit.Counters
	Steps, Rows int64
	Stalled     time.Duration // the device stood idle, within a step, because weights had not come
}

type counters struct{ steps, rows, stalled atomic.Int64 }

// Counters may be called by any goroutine.
func (s *Stepper) Counters() Counters {
	c := &s.count
	return Counters{s.queue.Counters(), c.steps.Load(), c.rows.Load(), time.Duration(c.stalled.Load())}
}

// leastStamps is twice the submissions of a step whose time is measured, for a small model: a submission for each streamed unit, and what a
// prompt's rows split off, find room.
const leastStamps = 256

// New allocates the scratch and builds what every step needs.
func New(o Options) (*Stepper, error) {
	s := &Stepper{Options: o, bases: make([]uint64, len(o.Plan.Units))}
	s.inputs.freqs, s.inputs.mscale = o.Hyper.Rope.Freqs()
	s.inputs.embd, _, _ = o.Model.Tensor(arch.TokenEmbd)
	var err error
	if s.ops, err = unitOps(o.Plan.Units, func(l int) []arch.Op { return o.Hyper.Layer(l, o.Model.Has) }); err != nil {
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

func (s *Stepper) allocate() (err error) {
	of := &s.Plan.Scratch
	if s.scratch, err = s.VRAM.Alloc("scratch", of.Bytes, vk.DeviceLocal); err != nil {
		return err
	}
	if s.in, err = s.Host.Alloc("step inputs", experts.InputBytes(s.Plan, s.Hyper), vk.Upload); err != nil {
		return err
	}
	s.out, err = s.Host.Alloc("logits", of.Logits.Bytes+of.Argmax.Bytes, vk.Readback)
	return err
}

func (s *Stepper) makeQueue() (err error) {
	s.queue, err = submit.New(submit.Options{
		Device: s.Device, Kernels: s.Kernels, Compute: s.Compute, MaxSubmit: s.MaxSubmit, Kept: experts.KeptBuffers(s.Plan, s.Hyper),
		Stamps: max(leastStamps, 2*len(s.Plan.Units)), Listen: s.Listen, Pacer: s.Pacer, Trace: s.Trace, Ops: s.Ops, ReadRate: s.ReadRate,
		Configure: s.configure, Collect: s.Weights.Collect, Ran: s.ran, Name: s.name,
	})
	if err != nil {
		return err
	}
	s.model = record.Model{Hyper: s.Hyper, Scratch: &s.Plan.Scratch, KV: &s.Plan.KV, KVType: s.KVType, Base: s.scratch.Address}
	s.frame = record.Frame{Model: &s.model, Commands: &s.queue.Commands, Rec: s.queue.Rec, Tensor: s.pass.tensor}
	return nil
}

func (s *Stepper) makeExperts() (err error) {
	s.experts, err = experts.New(experts.Options{
		Device: s.Device, Queue: s.queue, Frame: &s.frame, Weights: s.Weights, Host: s.Host, Scratch: s.scratch, Inputs: s.in, Plan: s.Plan, Ops: s.ops,
		Logger: s.Logger, ConditionalBelow: s.ConditionalBelow, Merge: s.MergeExperts, Routed: s.Routed,
	}, s.bases)
	return err
}

// RunsConditionally reports whether layers can run without asking the host where their experts are.
func (s *Stepper) RunsConditionally() bool { return s.experts.RunsConditionally() }

// RunConditionally has layers run without asking the host where they miss experts in less than a share of layers; 0: none does.
func (s *Stepper) RunConditionally(below float64) { s.experts.RunConditionally(below) }

// Replan goes on with another plan, between two steps: one that differs in where units live.
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

// ErrStopped is wrapped, beside the context's error, by a step that was stopped.
var ErrStopped = submit.ErrStopped

// Step runs rows through the model and returns what those that asked for logits get; with greedy only the argmax is computed. Canceling ctx
// ends it between two submissions with [ErrStopped]; whoever cancels it calls [weights.Store.Wake] then, for a step that waits for weights.
// After an error it is as if the step had not begun, unless the device is lost.
func (s *Stepper) Step(ctx context.Context, rows []Row, greedy bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrStopped, err)
	}
	asked, err := s.check(rows, s.pass.asked[:0])
	if err != nil {
		return Result{}, err
	}
	s.begin(ctx, rows, asked, greedy)
	if s.Pacer != nil {
		s.Pacer.Begin()
		defer s.Pacer.End()
	}
	if err := s.pass.run(); err != nil {
		return Result{}, fmt.Errorf("step of %d rows: %w", len(rows), s.queue.Abort(err, s.undo))
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

// begin makes rows the step under way.
func (s *Stepper) begin(ctx context.Context, rows []Row, asked []int, greedy bool) {
	s.pass = pass{s: s, rows: rows, asked: asked, kept: s.pass.kept[:0], greedy: greedy, at: submit.Nothing}
	f := &s.frame
	f.AtHand.Spans, f.AtHand.N, f.AtHand.Kept = spans(f.AtHand.Spans[:0], rows, nil), len(rows), false
	f.Take(f.AtHand.Spans[0])
	f.Batch.Sequences, f.Batch.MaxPages = s.inputs.sequences(rows)
	f.Batch.Keeps = !s.EveryRow && s.Routed == nil && len(rows) > 1 && len(asked) < len(rows)
	s.queue.Begin(ctx, len(rows))
}

// undo forgets a step that ended before its time; the compute timeline has reached value, the last one that it submitted.
func (s *Stepper) undo(value uint64) error {
	s.experts.Abort()
	return s.Weights.Abort(value)
}

// configure sets what the recorder needs to know of the rows at hand.
func (s *Stepper) configure(rec *kernels.Recorder) {
	f, of := &s.frame, &s.Plan.Scratch
	rec.Role, rec.Run, rec.Absent = f.Rows.Role, f.Rows.OneRun, f.Absent
	rec.Scratch, rec.Q8, rec.Parts, rec.Counters = f.Memory(of.Halves), f.Memory(of.Q8), f.Memory(of.Parts), f.Memory(of.Counts)
}

// ran accounts for a submission that has run.
func (s *Stepper) ran(r *submit.Ran) {
	if r.Awaits != submit.Nothing && (r.Before > 0 || !r.Timed) {
		if r.Timed && s.Plan.InPlace { // the host waits for the disk
			r.Idle = min(r.Idle, r.Waited)
		} else if r.Timed {
			if late, ok := s.Weights.Late(r.Awaits, r.Before); ok {
				r.Idle = min(r.Idle, late) // it was the bytes, not us
			}
		}
		s.count.stalled.Add(int64(max(0, r.Idle)))
		s.experts.Ran(r)
	}
	if s.Ran != nil && r.Timed && r.From != submit.Nothing && s.Plan.Units[r.To].Resident() { // a streamed unit ends its submission
		s.Ran(r.Rows, r.Cost, r.Busy)
	}
}

// name names work on units from one to another of the plan.
func (s *Stepper) name(from, to int) string {
	if from == to {
		return s.Plan.Units[to].Name
	}
	return fmt.Sprintf("%s to %s", s.Plan.Units[from].Name, s.Plan.Units[to].Name)
}
