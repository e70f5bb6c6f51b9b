package experts

import (
	"log/slog"

	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/submit"
	"leat/internal/weights"
	"leat/vk"
	"leat/vk/mem"
)

// Options configure a [Runner]. The fields from Device to Logger must be set.
type Options struct {
	Device  *vk.Device     // the device that runs the steps
	Queue   *submit.Queue  // submits the commands of the current step
	Frame   *record.Frame  // records the operations of the current step
	Weights *weights.Store // has the slots of experts, if there are any
	Host    *mem.Heap      // allocates host memory for the routers' choices
	Scratch *vk.Buffer     // device memory, laid out by the plan
	Inputs  *vk.Buffer     // host memory; the runner uses it from the offset of the plan's ExpertTable on, see InputBytes
	Plan    *plan.Plan     // where experts are: in units or in slots
	Ops     [][]arch.Op    // operations of each unit of the plan, to find the tensors of a layer's experts
	Logger  *slog.Logger   // gets a warning if the device can't run layers conditionally

	// ConditionalBelow is a miss rate: while a smaller share of layers misses an expert, layers run conditionally, without asking the host, if the
	// device can. 0 disables that: on a CPU asking the host costs less.
	ConditionalBelow float64
	// Merge runs the resident and the uploaded experts of a layer in one wave: on a CPU device each dispatch has a fixed cost, and uploads
	// don't overlap with compute.
	Merge bool
	// Routed is called once after each step with the experts that each row used, for all layers: (rows, layers with experts, Used). It must
	// not retain ids. nil: not called.
	Routed func(rows int, ids []uint16) error
}

// Layer is the argument of [Runner.Run]: a layer whose router is recorded, and the unit that holds all or some of its experts.
type Layer struct {
	Unit  int      // index of the plan's unit that holds the experts
	Layer int      // index of the layer in the model
	Op    *arch.Op // the operation of kind [arch.Experts]
}

// Runner records and submits the experts of each step. There are two: [placed], where each expert has its place in a unit, resident or
// in the ring, and [slotted], where experts share slots. Use it from one goroutine.
type Runner interface {
	// Begin begins a step, and opens its first command buffer. With kept, the step's command buffers are kept: later steps may submit them again.
	Begin(kept bool) error
	// RouterRecorded is called after a layer's router has been recorded, before Run. It records a copy of the choice for Options.Routed.
	RouterRecorded(layer int) error
	// Run records the experts of a layer. With experts in slots it may submit all earlier commands, wait for the router's choice, and upload
	// experts. It leaves a command buffer open, which has the last products of the layer.
	Run(l Layer) error
	// End submits all commands that are not submitted yet. It waits only for layers that run conditionally, until all of them have run.
	End() error
	// Over is called after the device has ended the step, and calls Options.Routed.
	Over() error
	// Abort drops the state of a step that failed or was stopped. [weights.Store.Abort] empties the batches.
	Abort()
	// Replan switches to another plan, between two steps. The caller must drop kept command buffers, see [submit.Queue.ForgetKept].
	Replan(p *plan.Plan)
	// CanRunConditionally reports whether layers can run conditionally, without asking the host.
	CanRunConditionally() bool
	// SetConditionalBelow sets [Options.ConditionalBelow], the miss rate below which layers run conditionally.
	SetConditionalBelow(below float64)
	// Ran is called for each command buffer that waited for bytes and has run. It counts the time that the device was idle because experts were missing.
	Ran(r *submit.Ran)
	// Close frees host memory; the device must be idle. Safe to call twice.
	Close()
}

// New makes the runner that fits the plan. bases has the device address of each unit in the current step; the caller updates it.
func New(o Options, bases []uint64) (Runner, error) {
	c, err := newChoices(&o)
	if err != nil {
		return nil, err
	}
	if o.Weights.Experts() == nil {
		return newPlaced(o, c, bases), nil
	}
	s, err := newSlotted(o, c)
	if err != nil {
		c.close(o.Host)
		return nil, err
	}
	return s, nil
}

// matrices is the number of matrices per expert in the device's tables of addresses, in the order of the operations.
const matrices = 3

// KeptBuffers is the number of command buffers that a runner keeps, for [submit.Options.KeptSlots]; 0 for plans without slots.
func KeptBuffers(p *plan.Plan, h *arch.Hyper) int {
	if p.Experts == nil {
		return 0
	}
	return 1 + segmentsPerLayer*h.BlockCount
}

// IsSlotted reports whether a unit of the plan stands for a layer's experts in shared slots. Such a unit has no memory of its own.
func IsSlotted(u *plan.Unit) bool { return u.Tier == plan.Cached }

// nextSlottedLayer is the layer of the first unit after unit whose experts share slots, or noLayer. Callers prefetch its experts, or look them up.
func nextSlottedLayer(p *plan.Plan, unit int) int {
	for i := unit + 1; i < len(p.Units); i++ {
		if IsSlotted(&p.Units[i]) {
			return p.Units[i].Layer
		}
	}
	return noLayer
}

// noLayer is the index of no layer.
const noLayer = -1
