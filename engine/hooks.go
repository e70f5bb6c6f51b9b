package engine

import (
	"leat/internal/budget"
	"leat/internal/kernels"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
)

// hooks change how a model is loaded and run, for tests and rehearsals. The zero value changes nothing.
type hooks struct {
	fail     faults
	machine  *budget.Machine        // plan as on this machine
	shared   mem.Shared             // keep weights in place in such memory, whatever the budgets
	lanes    int                    // upload lanes, on as many queues as there are; 0: the device's choice
	headroom func() int64           // says how much VRAM is free, and is asked before every step
	waves    waves                  // how a layer's experts in VRAM run beside those that are uploaded
	always   bool                   // run layers conditionally however often they miss an expert, on a CPU too
	polls    bool                   // the host polls for the end of a step, on a CPU too
	everyRow bool                   // the last layer computes all rows, whether their logits are wanted or not
	hurried  bool                   // a rehearsal times each step as few times as it can
	opened   func(*vk.Device)       // may take features from the device
	kernels  func(*kernels.Options) // may change how kernels are made
	routes   bool                   // a CPU uses topk_moe_routed, too, see [kernels.Options]
	turns    bool                   // and mul_mat_vec_rope

	// lend returns a device for a model with such options, or nil where the model must open its own. Tests share a few: most of what a
	// small model costs is to compile kernels and to test them.
	lend func(*Options, *hooks) (*device, error)
}

// faults fail reads of weights and calls of Vulkan.
type faults struct {
	read file.Fault
	call vk.Fault
}

// waves says how a layer's experts in VRAM run beside those that are being uploaded.
type waves int

const (
	byDevice      waves = iota // together on a CPU, apart on a GPU
	wavesApart                 // at once, before the others have come
	wavesTogether              // with those that come
)
