package experts

import (
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/weights"
)

// conditional runs the layers of a one-row step conditionally, without asking the host: the device looks up each chosen expert in its table of
// experts in VRAM. If one is missing, the device skips the layer and all later ones. The host then uploads the expert and submits the same commands again.
type conditional struct {
	s        *slotted      // the runner whose layers these are
	table    residentTable // the device's table of experts in VRAM
	steady   bool          // the last step was kept and none of its command buffers was cut: layers of the next step may run conditionally
	missRate float64       // share of recent layers that missed an expert, a running mean

	layers      []conditionalLayer // the step's conditional layers whose outcome the host has not read yet, in order
	unsubmitted int                // number of layers whose command buffer, closed or still open, is submitted by the next flush
	layerOpen   bool               // the open command buffer belongs to a conditional layer
}

// conditionalLayer is a layer of the current step that runs conditionally.
type conditionalLayer struct {
	Layer
	after       kernels.Quantised // inputs, quantized by earlier commands, that the layer's command buffer reads
	bufferIndex int               // index of the layer's command buffer among those closed in this step
	value       uint64            // timeline value of the layer's submission; 0: the layer is not submitted
	counted     bool              // the cache policies have been told which experts the layer used
	skipped     bool              // the device skipped the layer, and it is not submitted again yet
	bytes       int64             // bytes of weights that the layer's command buffer reads; set when the layer is skipped
}

const (
	missWeight      = 1.0 / 32 // weight of the newest layer in conditional.missRate
	lastConditional = 2        // layers in a step's last submission. It is small: the device is idle while the policies are told of them.
)

// newConditional makes a conditional with a table that has no experts yet. It returns nil if the options, the slots or the device rule out
// conditional layers. It tests the device, see [conditional.canSkip], and logs a warning if the test fails.
func newConditional(s *slotted) (*conditional, error) {
	o := &s.o
	if o.ConditionalBelow == 0 || !o.Device.Features.ConditionalRendering || !oneRowFits(&s.o) {
		return nil, nil
	}
	c := &conditional{s: s, missRate: 1}
	if ok, err := c.canSkip(); err != nil {
		return nil, err
	} else if !ok {
		o.Logger.Warn("conditional dispatches do not do what they should: every layer asks the host where its experts are")
		return nil, nil
	}
	c.table.init(s)
	return c, nil
}

// oneRowFits reports whether the slots of each class hold all experts that a row uses in a layer.
func oneRowFits(o *Options) bool {
	for i := range o.Plan.Experts.Classes {
		if o.Plan.Experts.Classes[i].Slots() < o.Frame.Hyper.Experts.Used {
			return false
		}
	}
	return true
}

// begin begins a step: it forgets the layers of the last step, and resets the frame's Lookup.
func (c *conditional) begin() {
	c.layers, c.unsubmitted, c.layerOpen = c.layers[:0], 0, false
	c.s.o.Frame.Lookup = record.Lookup{}
}

// noteMisses updates the miss rate with a layer that missed n experts.
func (c *conditional) noteMisses(n int) {
	if c == nil {
		return
	}
	c.missRate -= missWeight * c.missRate
	if n > 0 {
		c.missRate += missWeight
	}
}

// mayRun reports whether the next layer may run conditionally: in a kept step after a steady one, if few layers miss experts. It also may if the outcome of
// an earlier conditional layer is not read yet, so that the host need not wait for it.
func (c *conditional) mayRun() bool {
	return c != nil && c.s.segments.kept && c.steady && (len(c.layers) > 0 || c.missRate < c.s.o.ConditionalBelow)
}

// runLayer records a layer to run on the condition that all its chosen experts are in VRAM, or reuses its segment of an earlier step, and leaves the
// command buffer open. If there are enough layers to submit, it first submits them, and handles the outcomes of earlier ones, see awaitOutcomes.
func (c *conditional) runLayer(l Layer) error {
	s, q := c.s, c.s.o.Queue
	after := q.Commands.Quantised()
	if err := c.closePrevious(l.Layer); err != nil {
		return err
	}
	if len(c.layers) == 0 || c.unsubmitted >= plan.LayersPerSubmission(c.missRate) || s.layers-s.nth[l.Layer] == lastConditional {
		if err := s.flush(); err != nil {
			return err
		}
		if err := c.awaitOutcomes(false); err != nil {
			return err
		}
	}
	if len(c.layers) == 0 {
		if err := c.openPrelude(l.Layer); err != nil {
			return err
		}
		if err := q.Commands.Enqueue(); err != nil {
			return err
		}
	}
	c.layers = append(c.layers, conditionalLayer{Layer: l, after: after})
	c.unsubmitted++
	again, err := c.openLayer(&c.layers[len(c.layers)-1])
	if err != nil || again {
		return err
	}
	q.Commands.Buffer().DispatchConditionBarrier()
	q.Commands.Buffer().BeginConditional(s.o.Scratch, c.table.runFlagOff(l.Layer))
	return s.o.Frame.EachSpan(l.Op, &s.o.Plan.Units[l.Unit])
}

// closePrevious enqueues the command buffer that precedes a conditional layer. If that belongs to no conditional layer, closePrevious first records a copy
// of the layer's choice for the host. If it does, the layer's experts have been looked up in it already.
func (c *conditional) closePrevious(layer int) error {
	if !c.layerOpen {
		if err := c.s.copyChoice(layer); err != nil {
			return err
		}
	} else if f := c.s.o.Frame; !c.s.o.Queue.Commands.Again() && f.Rec.Copied() {
		f.Rec.Barrier()
	}
	if err := c.endLayer(); err != nil {
		return err
	}
	return c.s.o.Queue.Commands.Enqueue()
}

// openLayer opens a conditional layer's segment, and sets up the frame to record its products and the lookup of the next layer's experts.
// again reports that the segment was recorded in an earlier step.
func (c *conditional) openLayer(l *conditionalLayer) (again bool, err error) {
	s, q, f := c.s, c.s.o.Queue, c.s.o.Frame
	again, err = q.Commands.OpenKept(s.segmentSlot(l.Layer.Layer)+2, l.after, true)
	if err != nil {
		return false, err
	}
	l.bufferIndex, l.value, c.layerOpen = q.Commands.Closed(), 0, true
	for i := range l.Op.Ops {
		if l.Op.Ops[i].Kind == arch.MulMatID && l.Op.Ops[i].Row == 0 { // parts of a tensor are read with its first
			if t, ok := s.o.Plan.Units[l.Unit].Tensor(l.Op.Ops[i].Weight); ok {
				q.Commands.Work().WeightBytes += t.Bytes * int64(f.Hyper.Experts.Used)
			}
		}
	}
	f.Experts = record.ExpertTable{Address: c.table.entriesAddress(l.Layer.Layer), Last: f.Hyper.Experts.Count}
	f.Lookup = record.Lookup{Layer: nextSlottedLayer(s.o.Plan, l.Unit)}
	if f.Lookup.Layer != noLayer {
		f.Lookup.Address = c.table.layerAddress(f.Lookup.Layer)
	}
	return again, nil
}

// endLayer ends the conditional section of the open command buffer, if that belongs to a conditional layer. The buffer stays open.
func (c *conditional) endLayer() error {
	if c == nil || !c.layerOpen {
		return nil
	}
	c.layerOpen = false
	c.s.o.Frame.Lookup = record.Lookup{}
	if c.s.o.Queue.Commands.Again() {
		return nil
	}
	if err := c.s.o.Frame.Rec.Finish(); err != nil {
		return err
	}
	c.s.o.Queue.Commands.Buffer().EndConditional()
	return nil
}

// enqueueHostBarrier enqueues a command buffer with a barrier, after conditional layers that are not submitted yet, if there are any: it makes
// visible to the host the choices and flags that they write.
func (c *conditional) enqueueHostBarrier() error {
	if c == nil || c.unsubmitted == 0 {
		return nil
	}
	q := c.s.o.Queue
	if err := q.Commands.Open(); err != nil {
		return err
	}
	q.Commands.Buffer().HostBarrier()
	return q.Commands.Enqueue()
}

// submitted sets the value of the conditional layers in the last submission to its timeline value. [slotted.flush] calls it.
func (c *conditional) submitted() {
	if c == nil {
		return
	}
	for i := range c.layers {
		if l := &c.layers[i]; l.value == 0 && !l.skipped {
			l.value = c.s.o.Queue.Value()
		}
	}
	c.unsubmitted = 0
}

// openPrelude opens a command buffer and records what must run before conditional layers: the update of the device's table of experts, zeros to
// all run flags, and the lookup of a layer's experts. The device skips each conditional layer whose lookup has not set its run flag.
func (c *conditional) openPrelude(layer int) error {
	s, q, f := c.s, c.s.o.Queue, c.s.o.Frame
	if err := q.Commands.Open(); err != nil {
		return err
	}
	if err := c.table.update(); err != nil {
		return err
	}
	if err := f.Rec.Zero(s.o.Scratch, c.table.runFlagOff(0), int64(4*f.Hyper.BlockCount)); err != nil {
		return err
	}
	f.Rec.Barrier()
	return f.RecordLookup(c.table.layerAddress(layer))
}

// setSteady sets steady, see [conditional]. [slotted.Over] calls it when the device has ended a step.
func (c *conditional) setSteady(steady bool) {
	if c != nil {
		c.steady = steady
	}
}

// abort drops the state of a step that failed or was stopped. The next step does not run layers conditionally, and the whole table is copied to the device
// before conditional layers run again.
func (c *conditional) abort() {
	if c != nil {
		c.steady = false
		c.table.markAllStale()
		c.begin()
	}
}

// noteBatch notes a batch's experts in the table, see [residentTable.noteBatch]. It does nothing if c is nil.
func (c *conditional) noteBatch(b *weights.Batch) error {
	if c == nil {
		return nil
	}
	return c.table.noteBatch(b)
}
