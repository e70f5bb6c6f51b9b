package experts

import (
	"fmt"

	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/weights"
)

// ahead runs the layers of a one-row step conditionally, without asking the host: the device looks up each chosen expert in its table of
// experts in VRAM. If one is missing, it skips this layer and all later ones; the host uploads it and submits the same commands again.
type ahead struct {
	s        *slotted  // the runner whose layers these are
	table    residents // the device's table of experts in VRAM
	steady   bool      // the last step was kept and never cut, as it waited for experts only: the next step may run conditionally
	missRate float64   // share of recent layers that missed an expert, a running mean

	layers    []aheadLayer // the step's conditional layers whose outcome the host has not read yet, in order
	enqueued  int          // how many of layers are enqueued and not submitted
	layerOpen bool         // the open command buffer belongs to a conditional layer
}

// aheadLayer is a layer that runs conditionally.
type aheadLayer struct {
	Layer
	after   kernels.Quantised // inputs, quantized by earlier commands, that the layer's command buffer reads
	closed  int               // index of the layer's command buffer among those closed in this step
	value   uint64            // timeline value of the layer's submission; 0: not submitted
	counted bool              // the cache policies have been told which experts the layer used
	skipped bool              // the device skipped the layer, and it is not submitted again yet
	bytes   int64             // bytes of weights that the layer's command buffer reads; set when the layer is skipped
}

const (
	missWeight = 1.0 / 32 // weight of the newest layer in ahead.missRate
	lastAhead  = 2        // layers in a step's last submission: the policies learn of them while the device is idle, so few is better
)

// newAhead returns nil if the options, the slots or the device rule out conditional layers.
func newAhead(s *slotted) (*ahead, error) {
	o := &s.o
	if o.ConditionalBelow == 0 || !o.Device.Features.ConditionalRendering || !oneRowFits(&s.o) {
		return nil, nil
	}
	a := &ahead{s: s, missRate: 1}
	if ok, err := a.canSkip(); err != nil {
		return nil, err
	} else if !ok {
		o.Logger.Warn("conditional dispatches do not do what they should: every layer asks the host where its experts are")
		return nil, nil
	}
	a.table.init(s)
	return a, nil
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

// begin drops what is left of the last step.
func (a *ahead) begin() {
	a.layers, a.enqueued, a.layerOpen = a.layers[:0], 0, false
	a.s.o.Frame.Lookup = record.Lookup{}
}

// noteMisses updates the miss rate with the number of experts that a layer missed.
func (a *ahead) noteMisses(n int) {
	if a == nil {
		return
	}
	a.missRate -= missWeight * a.missRate
	if n > 0 {
		a.missRate += missWeight
	}
}

// mayRun reports whether the next layer may run conditionally.
func (a *ahead) mayRun() bool {
	return a != nil && a.s.parts.kept && a.steady && (len(a.layers) > 0 || a.missRate < a.s.o.ConditionalBelow)
}

// run records a layer to run on the condition that all its chosen experts are in VRAM.
func (a *ahead) run(l Layer) error {
	s, q := a.s, a.s.o.Queue
	after := q.Commands.Left()
	if err := a.closePrevious(l.Layer); err != nil {
		return err
	}
	if len(a.layers) == 0 || a.enqueued >= plan.LayersPerSubmission(a.missRate) || s.layers-s.nth[l.Layer] == lastAhead {
		if err := s.flush(); err != nil {
			return err
		}
		if err := a.settle(false); err != nil {
			return err
		}
	}
	if len(a.layers) == 0 {
		if err := a.openPrelude(l.Layer); err != nil {
			return err
		}
		if err := q.Commands.Enqueue(); err != nil {
			return err
		}
	}
	a.layers = append(a.layers, aheadLayer{Layer: l, after: after})
	a.enqueued++
	again, err := a.openLayer(&a.layers[len(a.layers)-1])
	if err != nil || again {
		return err
	}
	q.Commands.Buffer().DispatchConditionBarrier()
	q.Commands.Buffer().BeginConditional(s.o.Scratch, a.table.runFlagOff(l.Layer))
	return s.o.Frame.EachSpan(l.Op, &s.o.Plan.Units[l.Unit])
}

// closePrevious ends the command buffer before a conditional layer. A conditional layer before it has looked up this layer's experts.
func (a *ahead) closePrevious(layer int) error {
	if !a.layerOpen {
		if err := a.s.copyChoice(layer); err != nil {
			return err
		}
	} else if f := a.s.o.Frame; !a.s.o.Queue.Commands.Again() && f.Rec.Copied() {
		f.Rec.Barrier()
	}
	if err := a.endLayer(); err != nil {
		return err
	}
	return a.s.o.Queue.Commands.Enqueue()
}

// openLayer opens the kept command buffer of a conditional layer. again reports that it was recorded in an earlier step.
func (a *ahead) openLayer(l *aheadLayer) (again bool, err error) {
	s, q, f := a.s, a.s.o.Queue, a.s.o.Frame
	again, err = q.Commands.OpenKept(s.keptSlot(l.Layer.Layer)+2, l.after, true)
	if err != nil {
		return false, err
	}
	l.closed, l.value, a.layerOpen = q.Commands.Closed(), 0, true
	for i := range l.Op.Ops {
		if l.Op.Ops[i].Kind == arch.MulMatID {
			if t, ok := s.o.Plan.Units[l.Unit].Tensor(l.Op.Ops[i].Weight); ok {
				q.Commands.Work().WeightBytes += t.Bytes * int64(f.Hyper.Experts.Used)
			}
		}
	}
	f.Experts = record.ExpertTable{Address: a.table.entriesAddress(l.Layer.Layer), Last: f.Hyper.Experts.Count}
	f.Lookup = record.Lookup{Layer: nextSlottedLayer(s.o.Plan, l.Unit)}
	if f.Lookup.Layer != nothing {
		f.Lookup.Address = a.table.layerAddress(f.Lookup.Layer)
	}
	return again, nil
}

// endLayer ends the conditional section of the open command buffer, if that belongs to a conditional layer.
func (a *ahead) endLayer() error {
	if a == nil || !a.layerOpen {
		return nil
	}
	a.layerOpen = false
	a.s.o.Frame.Lookup = record.Lookup{}
	if a.s.o.Queue.Commands.Again() {
		return nil
	}
	if err := a.s.o.Frame.Rec.Finish(); err != nil {
		return err
	}
	a.s.o.Queue.Commands.Buffer().EndConditional()
	return nil
}

// tellHost enqueues a barrier that makes visible to the host what the enqueued conditional layers write to host memory.
func (a *ahead) tellHost() error {
	if a == nil || a.enqueued == 0 {
		return nil
	}
	q := a.s.o.Queue
	if err := q.Commands.Open(); err != nil {
		return err
	}
	q.Commands.Buffer().HostBarrier()
	return q.Commands.Enqueue()
}

// submitted gives the conditional layers that were enqueued the timeline value of their submission.
func (a *ahead) submitted() {
	if a == nil {
		return
	}
	for i := range a.layers {
		if l := &a.layers[i]; l.value == 0 && !l.skipped {
			l.value = a.s.o.Queue.Value()
		}
	}
	a.enqueued = 0
}

// settle waits for submitted conditional layers, all or those before the last submission, and counts the experts they used. If one was
// skipped, settle uploads its missing experts and submits it again with those after it.
func (a *ahead) settle(all bool) error {
	if a == nil {
		return nil
	}
	q := a.s.o.Queue
	for len(a.layers) > 0 && a.layers[0].value != 0 {
		value, n := a.layers[0].value, 0
		if more := a.layers[len(a.layers)-1].skipped; more && value == q.Value() { // the device runs the next ones while the host looks at these
			if err := a.submitSkipped(); err != nil {
				return err
			}
		} else if !more && !all && value == q.Value() {
			return nil
		}
		if err := q.Host.Hear(value); err != nil {
			return err
		}
		for n < len(a.layers) && a.layers[n].value == value && a.s.ranConditionally(a.layers[n].Layer.Layer) {
			if err := a.countUsed(&a.layers[n]); err != nil {
				return err
			}
			n++
		}
		a.layers = append(a.layers[:0], a.layers[n:]...)
		if len(a.layers) > 0 && a.layers[0].value == value {
			if err := a.resolve(); err != nil {
				return err
			}
		}
	}
	return nil
}

// countUsed tells the cache policies which experts a conditional layer used, once it has run.
func (a *ahead) countUsed(l *aheadLayer) error {
	if l.counted {
		return nil
	}
	s, x := a.s, a.s.x
	if err := a.takeChosen(l); err != nil {
		return err
	}
	if !s.waves.present.Arrived() {
		return fmt.Errorf("layer %d ran ahead without some of its experts", l.Layer.Layer)
	}
	a.noteMisses(0)
	x.Counters.Ahead()
	_, err := s.waves.present.Release(l.value, 0)
	return err
}

// takeChosen takes all experts that a layer chose into the batch waves.present, and starts to fetch the missing ones.
func (a *ahead) takeChosen(l *aheadLayer) error {
	s, n := a.s, &a.s.waves.need
	if err := s.countNeed(l.Layer.Layer); err != nil {
		return err
	}
	s.x.Begin(s.o.Queue.Commands.Step(), l.Layer.Layer)
	clear(n.taken)
	n.list()
	took, err := s.waves.present.Take(s.o.Queue.Commands.Context(), l.Layer.Layer, n.ids)
	if err == nil && took != len(n.ids) {
		err = fmt.Errorf("layer %d: slots for %d of the %d experts of one row", l.Layer.Layer, took, len(n.ids))
	}
	return err
}

// resolve uploads the missing experts of the first of layers, which the device skipped along with all later ones, and submits all again.
func (a *ahead) resolve() error {
	s, q, l := a.s, a.s.o.Queue, &a.layers[0]
	if err := q.Host.Hear(q.Value()); err != nil { // the layers after it are skipped too, so the wait is short
		return err
	}
	if a.enqueued > 0 {
		return fmt.Errorf("layer %d was skipped while others wait to be submitted", l.Layer.Layer)
	}
	for i := range a.layers {
		if of := &a.layers[i]; !of.skipped {
			of.bytes = q.Commands.WeightBytes(of.closed)
		}
	}
	q.Commands.Discount(l.closed)
	if err := a.takeChosen(l); err != nil {
		return err
	}
	a.noteMisses(1)
	waited, err := q.Host.Blocked(s.waves.present.Arrive)
	if err != nil {
		return err
	}
	if err := a.table.note(s.waves.present); err != nil {
		return err
	}
	s.waves.points = s.waves.present.Waits(s.waves.points[:0])
	if err := a.openPrelude(l.Layer.Layer); err != nil {
		return err
	}
	q.Commands.Work().Waited, q.Commands.Work().Awaits = waited, l.Unit
	q.Commands.Wait(s.waves.points, l.Unit)
	if err := q.Commands.Enqueue(); err != nil {
		return err
	}
	for i := range a.layers {
		a.layers[i].skipped, a.layers[i].value = true, 0
	}
	if err := a.submitSkipped(); err != nil {
		return err
	}
	l.counted = true
	_, err = s.waves.present.Release(q.Value(), s.o.Frame.Hyper.Experts.Count)
	return err
}

// submitSkipped submits the next skipped layers again: at most as many as are unlikely to miss an expert, see [plan.LayersPerSubmission].
func (a *ahead) submitSkipped() error {
	for i := range a.layers {
		l := &a.layers[i]
		if !l.skipped {
			continue
		}
		if a.enqueued >= plan.LayersPerSubmission(a.missRate) {
			break
		}
		again, err := a.openLayer(l)
		if err != nil {
			return err
		}
		if !again {
			return fmt.Errorf("layer %d: its commands were not kept", l.Layer.Layer)
		}
		a.layerOpen, l.skipped = false, false
		a.s.o.Queue.Commands.Work().WeightBytes = l.bytes
		a.enqueued++
		if err := a.s.o.Queue.Commands.Enqueue(); err != nil {
			return err
		}
	}
	a.s.o.Frame.Lookup = record.Lookup{}
	return a.s.flush()
}

// openPrelude opens a command buffer that updates the device's table of experts and looks up the experts of a layer. It clears all run
// flags first: the device skips each conditional layer whose lookup has not set its flag.
func (a *ahead) openPrelude(layer int) error {
	s, q, f := a.s, a.s.o.Queue, a.s.o.Frame
	if err := q.Commands.Open(); err != nil {
		return err
	}
	if err := a.table.update(); err != nil {
		return err
	}
	if err := f.Rec.Zero(s.o.Scratch, a.table.runFlagOff(0), int64(4*f.Hyper.BlockCount)); err != nil {
		return err
	}
	f.Rec.Barrier()
	return f.LookUp(a.table.layerAddress(layer))
}

// setSteady is called when the device has ended a step. Only after a steady one may layers of the next step run conditionally.
func (a *ahead) setSteady(steady bool) {
	if a != nil {
		a.steady = steady
	}
}

// abort drops the state of a step that failed or was stopped; the device's table is copied anew in the next step.
func (a *ahead) abort() {
	if a != nil {
		a.steady = false
		a.table.forget()
		a.begin()
	}
}

// note writes the addresses of a batch's experts to the table. The compute queue must wait for their uploads before the next lookup.
func (a *ahead) note(b *weights.Batch) error {
	if a == nil {
		return nil
	}
	return a.table.note(b)
}
