package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/kv"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/trace"
	"leat/internal/weights"
	"leat/vk"
	"leat/vk/limit"
	"leat/vk/mem"
)

// Options are what an Exec is built from; all fields down to Logger are needed. Plan may
// be replaced between two steps by one that differs in where units live.
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
	Pacer     *pace.Pacer     // inserts rests between submissions; nil: nobody does
	Trace     *trace.Recorder // keeps what device and host do; nil: nobody does
	EveryRow  bool            // the last layer computes rows that nobody asks logits of, too
	Ops       *trace.Ops      // sums up the time of each kernel; nil: nobody does
	VRAMRate  *limit.Rate     // slows the reading of weights down; nil: as fast as it is

	// Ran is told of submissions that read resident weights only: the rows of the step,
	// the cost in no unit, and how long the device was busy; nil: nobody is.
	Ran func(rows int, cost float64, busy time.Duration)

	// Ahead is how seldom layers must miss an expert to go ahead, if the device can: a part of them; 0: they don't. On a CPU
	// asking the host takes less.
	Ahead float64

	// Together has a layer's experts that are there wait for those that come, where one memory and the same cores do both.
	Together bool

	// Listens has the host look again and again for what it has to do something about at once, which a CPU's cores have no time for.
	Listens bool

	// Routed is told, after each step, which experts each row used: (rows, layers that have experts, used). It may not keep
	// ids. nil: nobody is.
	Routed func(rows int, ids []uint16) error
}

// Exec runs steps on one device, one at a time. One goroutine uses it.
type Exec struct {
	Options
	scratch *vk.Buffer
	in, out *vk.Buffer // host memory: a step's inputs, its logits
	pool    *vk.CommandPool
	cbs     []*vk.CommandBuffer
	stamps  *vk.QueryPool
	value   uint64 // last value submitted on Compute
	cost    estimator
	ticks   []uint64 // timestamps, as read
	ended   uint64   // the last one of the submission before; 0: none yet
	freqs   []float64
	mscale  float64
	ops     [][]arch.Op // by unit of the plan
	bases   []uint64    // where each unit lies in this step
	embd    *pack.Tensor
	logits  []float32
	ids     []int32
	run     run // the step under way
	inputs  inputs
	count   counters
	names   map[[2]int]string // of submissions that hold several units
	table   []uint64          // (L, 3, E) the addresses of experts that the device has been told
	last    time.Time         // end of the last span of the device
	timer   *opTimer          // of kernels; nil: nobody asks
	waves   waves             // of experts that share slots
	replay  replay
	parts   []part // of a step whose experts share slots
	ahead   ahead
}

// Row is one token of a step.
type Row struct {
	Seq      *kv.Sequence
	Token    int32
	Position int
	Logits   bool // wants its logits (or, in a greedy step, its argmax)
}

// Result is a step's output; its slices belong to the Exec until the next step.
type Result struct {
	Logits []float32 // (rows that asked, V); nil in a greedy step
	IDs    []int32   // (rows that asked) argmax; only in a greedy step
}

// leastStamps is twice the submissions of a step whose time is measured, for a small model:
// a submission for each streamed unit, and what a prompt's rows split off, find room.
const leastStamps = 512

// New allocates the scratch and builds what every step needs.
func New(o Options) (*Exec, error) {
	e := &Exec{Options: o, cost: estimator{scale: 1, target: defaultTarget}, names: map[[2]int]string{}}
	e.run.e, e.run.rec = e, o.Kernels.Recorder(nil)
	if o.MaxSubmit > 0 {
		e.cost.target = o.MaxSubmit.Seconds()
	}
	e.freqs, e.mscale = o.Hyper.Rope.Freqs()
	var err error
	if e.ops, err = unitOps(o.Plan.Units, func(l int) []arch.Op { return o.Hyper.Layer(l, o.Model.Has) }); err != nil {
		return nil, err
	}
	e.bases = make([]uint64, len(o.Plan.Units))
	e.table = make([]uint64, o.Hyper.BlockCount*expertTensors*o.Hyper.Experts.Count)
	e.embd, _, _ = o.Model.Tensor(arch.TokenEmbd)
	if err := e.allocate(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// unitOps deals each layer's program out to the units that hold its weights. What
// reads no weight runs behind what was before it. Fused operations whose weights are in
// several units stay so only where all of these stay in VRAM.
func unitOps(units []plan.Unit, layer func(l int) []arch.Op) ([][]arch.Op, error) {
	ops := make([][]arch.Op, len(units))
	for i := 0; i < len(units); {
		if !ofLayer(&units[i]) {
			i++
			continue
		}
		l, first, at := units[i].Layer, i, i
		for i < len(units) && ofLayer(&units[i]) && units[i].Layer == l {
			i++
		}
		for _, fused := range arch.Fuse(layer(l)) {
			for _, o := range apart(units[at:i], &fused) {
				if o.Kind == arch.Experts { // each unit computes its own
					at = dealExperts(ops[at:i], units[at:i], o) + at
					continue
				}
				for _, name := range o.Weights() {
					for at < i && !holds(&units[at], name) && !(o.Ops != nil && heldBefore(units[first:at], name)) {
						at++
					}
					if at == i {
						return nil, fmt.Errorf("layer %d: %s is not in its units, from the one in use on", l, name)
					}
				}
				ops[at] = append(ops[at], o)
			}
		}
	}
	return ops, nil
}

func ofLayer(u *plan.Unit) bool { return u.Kind == pack.Layer || u.Kind == pack.Experts }

func holds(u *plan.Unit, tensor string) bool {
	_, ok := u.Tensor(tensor)
	return ok
}

func heldBefore(units []plan.Unit, tensor string) bool {
	return slices.ContainsFunc(units, func(u plan.Unit) bool { return holds(&u, tensor) })
}

// apart is an operation, or what it stands for where its weights are not together.
func apart(units []plan.Unit, o *arch.Op) (parts []arch.Op) {
	if o.Ops == nil || together(units, o) {
		return []arch.Op{*o}
	}
	for i := range o.Ops {
		parts = append(parts, apart(units, &o.Ops[i])...)
	}
	return parts
}

// together reports whether the weights of an operation are in one of the units, or in several that stay in VRAM.
func together(units []plan.Unit, o *arch.Op) bool {
	from, to := len(units), -1
	for _, name := range o.Weights() {
		i := slices.IndexFunc(units, func(u plan.Unit) bool { return holds(&u, name) })
		if i < 0 {
			return false
		}
		from, to = min(from, i), max(to, i)
	}
	return from >= to || !slices.ContainsFunc(units[from:to+1], func(u plan.Unit) bool { return u.Tier != plan.VRAM })
}

func (e *Exec) allocate() (err error) {
	s := &e.Plan.Scratch
	if e.scratch, err = e.VRAM.Alloc("scratch", s.Bytes, vk.DeviceLocal); err != nil {
		return err
	}
	if e.in, err = e.Host.Alloc("step inputs", e.partTable(2)+e.Plan.Scratch.There.Bytes, vk.Upload); err != nil {
		return err
	}
	if e.out, err = e.Host.Alloc("logits", s.Logits.Bytes+s.Argmax.Bytes, vk.Readback); err != nil {
		return err
	}
	if e.pool, err = e.Device.Compute.NewCommandPool(); err != nil {
		return err
	}
	if e.stamps, err = e.Device.NewQueryPool(max(leastStamps, 4*len(e.Plan.Units))); err != nil {
		return err
	}
	if err := e.makeWaves(); err != nil {
		return err
	}
	return e.timeOps(e.Ops)
}

// Close frees what New made; the device must be idle. Safe to call twice.
func (e *Exec) Close() {
	if e.timer != nil {
		e.timer.stamps.Close()
	}
	if e.stamps != nil {
		e.stamps.Close()
	}
	if e.pool != nil {
		e.pool.Close()
	}
	for _, b := range []*vk.Buffer{e.in, e.out, e.waves.chosen} {
		if b != nil {
			e.Host.Free(b)
		}
	}
	if e.scratch != nil {
		e.VRAM.Free(e.scratch)
	}
	e.timer, e.stamps, e.pool, e.in, e.out, e.scratch, e.waves.chosen = nil, nil, nil, nil, nil, nil, nil
}

// Step runs rows through the model and returns what those that asked for logits
// get; with greedy only the argmax is computed. Canceling ctx ends it between two
// submissions with [ErrStopped]; whoever cancels it
// calls [weights.Store.Wake] then, for a step that waits for weights. After an error it is as if the step had not begun, unless the device
// is lost.
func (e *Exec) Step(ctx context.Context, rows []Row, greedy bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrStopped, err)
	}
	r := &e.run
	if err := r.reset(ctx, rows, greedy); err != nil {
		return Result{}, err
	}
	if e.Pacer != nil {
		e.Pacer.Begin()
		defer e.Pacer.End()
	}
	if err := r.forwardOrAgain(); err != nil {
		return Result{}, fmt.Errorf("step of %d rows: %w", len(rows), r.broken(err))
	}
	if err := r.ended(); err != nil {
		return Result{}, fmt.Errorf("wait for a step of %d rows: %w", len(rows), err)
	}
	if err := r.finish(); err != nil {
		return Result{}, err
	}
	if err := r.routed(); err != nil {
		return Result{}, err
	}
	e.count.steps.Add(1)
	e.count.rows.Add(int64(len(rows)))
	return e.read(rows, r.asked, greedy)
}

// ErrStopped is wrapped, beside the context's error, by a step that was stopped.
var ErrStopped = errors.New("the step was stopped")

// oneRun reports whether rows are of one sequence, at ascending positions.
func oneRun(rows []Row) bool {
	for i := 1; i < len(rows); i++ {
		if rows[i].Seq != rows[0].Seq || rows[i].Position <= rows[i-1].Position {
			return false
		}
	}
	return true
}

// check validates a batch and appends the rows that want logits to asked.
func (e *Exec) check(rows []Row, asked []int) ([]int, error) {
	if len(rows) == 0 || len(rows) > e.Plan.Chunk {
		return nil, fmt.Errorf("step: found %d rows, wanted 1 to %d", len(rows), e.Plan.Chunk)
	}
	for i, r := range rows {
		if r.Token < 0 || int(r.Token) >= e.Hyper.VocabSize {
			return nil, fmt.Errorf("step: row %d: found token %d, wanted 0 to %d", i, r.Token, e.Hyper.VocabSize-1)
		}
		if r.Position < 0 || r.Position >= r.Seq.Cap() {
			return nil, fmt.Errorf("step: row %d: found position %d, wanted 0 to %d", i, r.Position, r.Seq.Cap()-1)
		}
		if r.Logits {
			asked = append(asked, i)
		}
	}
	if len(asked) > e.Plan.LogitRows {
		return nil, fmt.Errorf("step: %d rows ask for logits, at most %d may", len(asked), e.Plan.LogitRows)
	}
	return asked, nil
}

// read copies a finished step's output out of the mapped buffer. It fails with a [*NotFiniteError] where that is no finite number.
func (e *Exec) read(rows []Row, asked []int, greedy bool) (Result, error) {
	m := e.out.Mapped()
	if greedy {
		e.ids = e.ids[:0]
		for i, row := range asked {
			id := int32(le.Uint32(m[e.Plan.Scratch.Logits.Bytes+int64(4*i):]))
			if id < 0 { // the kernel's word for it
				return Result{}, &NotFiniteError{Position: rows[row].Position, Token: ^id}
			}
			e.ids = append(e.ids, id)
		}
		return Result{IDs: e.ids}, nil
	}
	v := e.Hyper.VocabSize
	n := len(asked) * v
	if cap(e.logits) < n {
		e.logits = make([]float32, n)
	}
	e.logits = e.logits[:n]
	if !floats(e.logits, m) {
		at := firstNotFinite(e.logits)
		return Result{}, &NotFiniteError{Position: rows[asked[at/v]].Position, Token: int32(at % v)}
	}
	return Result{Logits: e.logits}, nil
}
