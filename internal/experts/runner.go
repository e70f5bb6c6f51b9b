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

// Options are what a [Runner] is built from. All are needed down to Logger.
type Options struct {
	Device  *vk.Device
	Queue   *submit.Queue
	Frame   *record.Frame
	Weights *weights.Store
	Host    *mem.Heap
	Scratch *vk.Buffer
	Inputs  *vk.Buffer // host memory; from the plan's Table on it is the runner's
	Plan    *plan.Plan
	Ops     [][]arch.Op // by unit of the plan
	Logger  *slog.Logger

	// ConditionalBelow is the share of layers missing an expert below which layers run without asking the host, where the device can.
	// 0 disables it: on a CPU asking the host costs less.
	ConditionalBelow float64
	// Merge runs the experts of a layer that are in VRAM together with those that are uploaded: on a CPU device each dispatch has a fixed
	// cost, and nothing is uploaded meanwhile.
	Merge bool
	// Routed is told, after each step, which experts each row used: (rows, layers that have experts, used). It may not keep ids; nil: no
	// one is told.
	Routed func(rows int, ids []uint16) error
}

// Layer is a layer whose router is recorded and whose experts are to run next.
type Layer struct {
	Unit  int      // of the plan, that holds these experts
	Layer int      // of the model
	Op    *arch.Op // [arch.Experts]
}

// Runner runs the experts of one step after another. One goroutine uses it.
type Runner interface {
	// Begin begins a step, and opens its first command buffer. With kept they are recorded to be submitted again.
	Begin(kept bool) error
	// Chosen is called when a layer's router has been recorded.
	Chosen(layer int) error
	// Run records the experts of a layer.
	Run(l Layer) error
	// End ends what is recorded of a step and submits it.
	End() error
	// Over is called when the device has ended the step.
	Over() error
	// Abort forgets a step that failed or was stopped.
	Abort()
	// Replan goes on with another plan, between two steps.
	Replan(p *plan.Plan)
	// RunsConditionally reports whether layers can run without asking the host, RunConditionally sets [Options.ConditionalBelow].
	RunsConditionally() bool
	RunConditionally(below float64)
	// Ran is told of a submission that has run.
	Ran(r *submit.Ran)
	// Close frees host memory; the device must be idle. Safe to call twice.
	Close()
}

// New makes the runner that fits the plan. bases is where each unit of the plan lies in the step under way, as its owner keeps it.
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

// matrices is how many matrices an expert has in the device's tables of addresses, in the order of the operations.
const matrices = 3

// KeptBuffers is how many command buffers a runner keeps for a plan's layers: see [submit.Options.Kept].
func KeptBuffers(p *plan.Plan, h *arch.Hyper) int {
	if p.Experts == nil {
		return 0
	}
	return 1 + partsPerLayer*h.BlockCount
}

// IsSlotted reports whether the unit stands for experts that share slots.
func IsSlotted(u *plan.Unit) bool { return u.Tier == plan.Cached }

// nextSlottedLayer is the layer of the next unit of experts that share slots, behind one; nothing: there is none.
func nextSlottedLayer(p *plan.Plan, unit int) int {
	for i := unit + 1; i < len(p.Units); i++ {
		if IsSlotted(&p.Units[i]) {
			return p.Units[i].Layer
		}
	}
	return nothing
}

// nothing is the layer of no layer.
const nothing = -1
