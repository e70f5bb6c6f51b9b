package experts

import (
	"fmt"

	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/weights"
)

// ahead runs layers of a step of one row without asking the host where their experts are. The device has a table of all experts in VRAM; a
// router looks up those it chose, and the layer's dispatches run under the condition that all were there. If one was not, they are
// skipped, with all layers that follow, until the host has had it uploaded and submits the same commands again. The host learns of layers
// that ran well by and by.
type ahead struct {
	s      *slotted
	table  residents
	steady bool    // the step before waited for nothing but experts
	misses float64 // how likely a layer misses an expert, by those before

	layers  []aheadLayer // of the step: of those nothing is known yet
	waiting int          // of them, those of the next submission
	open    bool         // the open command buffer is such a layer's
}

// aheadLayer is a layer that was submitted ahead.
type aheadLayer struct {
	Layer
	after   kernels.Brought // what its command buffer relies on
	closed  int             // the step's command buffers closed before its own
	value   uint64          // of its submission; 0: it is enqueued
	counted bool            // what it used is told to the policies
	skipped bool            // it was, and has yet to be submitted again
	bytes   int64           // of weights that its command buffer reads, once that was submitted
}

const (
	missWeight = 1.0 / 32 // weight of the last layer in the likelihood of misses
	lastAhead  = 2        // layers of the step's last submission: what they used is told to the policies while the device is idle
)

// newAhead makes it where the device can skip dispatches; else it is nil.
func newAhead(s *slotted) (*ahead, error) {
	o := &s.o
	if o.ConditionalBelow == 0 || !o.Device.Features.ConditionalRendering || !oneRowFits(&s.o) {
		return nil, nil
	}
	a := &ahead{s: s, misses: 1}
	if ok, err := a.skips(); err != nil {
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

func (a *ahead) begin() {
	a.layers, a.waiting, a.open = a.layers[:0], 0, false
	a.s.o.Frame.Lookup = record.Lookup{}
}

// missed adds how many experts a layer missed to what is expected of the next ones.
func (a *ahead) missed(n int) {
	if a == nil {
		return
	}
	a.misses -= missWeight * a.misses
	if n > 0 {
		a.misses += missWeight
	}
}

// may reports whether the layer at hand may run without asking.
func (a *ahead) may() bool {
	return a != nil && a.s.parts.kept && a.steady && (len(a.layers) > 0 || a.misses < a.s.o.ConditionalBelow)
}

// run records a layer under the condition that its experts are in VRAM.
func (a *ahead) run(l Layer) error {
	s, q := a.s, a.s.o.Queue
	after := q.Commands.Left()
	if err := a.between(l.Layer); err != nil {
		return err
	}
	if len(a.layers) == 0 || a.waiting >= plan.Stride(a.misses) || s.layers-s.nth[l.Layer] == lastAhead {
		if err := s.flush(); err != nil {
			return err
		}
		if err := a.settle(false); err != nil {
			return err
		}
	}
	if len(a.layers) == 0 {
		if err := a.prelude(l.Layer); err != nil {
			return err
		}
		if err := q.Commands.Enqueue(); err != nil {
			return err
		}
	}
	a.layers = append(a.layers, aheadLayer{Layer: l, after: after})
	a.waiting++
	again, err := a.openLayer(&a.layers[len(a.layers)-1])
	if err != nil || again {
		return err
	}
	q.Commands.Buffer().DispatchConditionBarrier()
	q.Commands.Buffer().BeginConditional(s.o.Scratch, a.table.runFlagOff(l.Layer))
	return s.o.Frame.EachSpan(l.Op, &s.o.Plan.Units[l.Unit])
}

// between ends what is open before a layer that is to run ahead. The layer before looks its experts up, if it runs ahead itself.
func (a *ahead) between(layer int) error {
	if !a.open {
		if err := a.s.copyChoice(layer); err != nil {
			return err
		}
	} else if f := a.s.o.Frame; !a.s.o.Queue.Commands.Again() && f.Rec.Copied() {
		f.Rec.Barrier()
	}
	if err := a.close(); err != nil {
		return err
	}
	return a.s.o.Queue.Commands.Enqueue()
}

// openLayer opens a layer's command buffer.
func (a *ahead) openLayer(l *aheadLayer) (again bool, err error) {
	s, q, f := a.s, a.s.o.Queue, a.s.o.Frame
	again, err = q.Commands.OpenKept(s.keptOf(l.Layer.Layer)+2, l.after, true)
	if err != nil {
		return false, err
	}
	l.closed, l.value, a.open = q.Commands.Closed(), 0, true
	for i := range l.Op.Ops {
		if l.Op.Ops[i].Kind == arch.MulMatID {
			if t, ok := s.o.Plan.Units[l.Unit].Tensor(l.Op.Ops[i].Weight); ok {
				q.Commands.Work().WeightBytes += t.Bytes * int64(f.Hyper.Experts.Used)
			}
		}
	}
	f.Experts = record.ExpertTable{Address: a.table.address(l.Layer.Layer), Last: f.Hyper.Experts.Count}
	f.Lookup = record.Lookup{Layer: nextSlottedLayer(s.o.Plan, l.Unit)}
	if f.Lookup.Layer != nothing {
		f.Lookup.Address = a.table.head(f.Lookup.Layer)
	}
	return again, nil
}

// close ends what is recorded of a layer that runs ahead.
func (a *ahead) close() error {
	if a == nil || !a.open {
		return nil
	}
	a.open = false
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

// tellHost ends a submission of layers that run ahead: what they write to host memory is to be seen.
func (a *ahead) tellHost() error {
	if a == nil || a.waiting == 0 {
		return nil
	}
	q := a.s.o.Queue
	if err := q.Commands.Open(); err != nil {
		return err
	}
	q.Commands.Buffer().HostBarrier()
	return q.Commands.Enqueue()
}

// submitted notes that what was enqueued is submitted.
func (a *ahead) submitted() {
	if a == nil {
		return
	}
	for i := range a.layers {
		if l := &a.layers[i]; l.value == 0 && !l.skipped {
			l.value = a.s.o.Queue.Value()
		}
	}
	a.waiting = 0
}

// settle learns how the layers submitted ahead went: all, or those before the last submission. Where one was skipped its experts are
// uploaded, and it is submitted again with those behind it.
func (a *ahead) settle(all bool) error {
	if a == nil {
		return nil
	}
	q := a.s.o.Queue
	for len(a.layers) > 0 && a.layers[0].value != 0 {
		value, n := a.layers[0].value, 0
		if more := a.layers[len(a.layers)-1].skipped; more && value == q.Value() { // the next ones run while the host looks at these
			if err := a.submitSkipped(); err != nil {
				return err
			}
		} else if !more && !all && value == q.Value() {
			return nil
		}
		if err := q.Host.Hear(value); err != nil {
			return err
		}
		for n < len(a.layers) && a.layers[n].value == value && a.s.went(a.layers[n].Layer.Layer) {
			if err := a.went(&a.layers[n]); err != nil {
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

// went tells the policies what a layer used that ran ahead.
func (a *ahead) went(l *aheadLayer) error {
	if l.counted {
		return nil
	}
	s, x := a.s, a.s.x
	if err := a.take(l); err != nil {
		return err
	}
	if !s.waves.present.Arrived() {
		return fmt.Errorf("layer %d ran ahead without some of its experts", l.Layer.Layer)
	}
	a.missed(0)
	x.Counters.Ahead()
	_, err := s.waves.present.Release(l.value, 0)
	return err
}

// take takes all experts that a layer chose into the batch of those present.
func (a *ahead) take(l *aheadLayer) error {
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

// resolve has the missing experts of the first layer uploaded, which was skipped with all behind it, and submits all of these again.
func (a *ahead) resolve() error {
	s, q, l := a.s, a.s.o.Queue, &a.layers[0]
	if err := q.Host.Hear(q.Value()); err != nil { // those behind it are skipped, and soon over
		return err
	}
	if a.waiting > 0 {
		return fmt.Errorf("layer %d was skipped while others wait to be submitted", l.Layer.Layer)
	}
	for i := range a.layers {
		if of := &a.layers[i]; !of.skipped {
			of.bytes = q.Commands.WeightBytes(of.closed)
		}
	}
	q.Commands.Discount(l.closed)
	if err := a.take(l); err != nil {
		return err
	}
	a.missed(1)
	waited, err := q.Host.Blocked(s.waves.present.Arrive)
	if err != nil {
		return err
	}
	if err := a.table.note(s.waves.present); err != nil {
		return err
	}
	s.waves.points = s.waves.present.Waits(s.waves.points[:0])
	if err := a.prelude(l.Layer.Layer); err != nil {
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

// submitSkipped submits the next layers again that were skipped: no more at a time than are likely to go well.
func (a *ahead) submitSkipped() error {
	for i := range a.layers {
		l := &a.layers[i]
		if !l.skipped {
			continue
		}
		if a.waiting >= plan.Stride(a.misses) {
			break
		}
		again, err := a.openLayer(l)
		if err != nil {
			return err
		}
		if !again {
			return fmt.Errorf("layer %d: its commands were not kept", l.Layer.Layer)
		}
		a.open, l.skipped = false, false
		a.s.o.Queue.Commands.Work().WeightBytes = l.bytes
		a.waiting++
		if err := a.s.o.Queue.Commands.Enqueue(); err != nil {
			return err
		}
	}
	a.s.o.Frame.Lookup = record.Lookup{}
	return a.s.flush()
}

// prelude opens a command buffer that tells the device which experts were uploaded and evicted, and has it look up those of a layer; no
// other layer may run before it has looked.
func (a *ahead) prelude(layer int) error {
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
	return f.LookUp(a.table.head(layer))
}

// over is told that the device has ended a step, which waited for nothing but experts if it is steady.
func (a *ahead) over(steady bool) {
	if a != nil {
		a.steady = steady
	}
}

func (a *ahead) abort() {
	if a != nil {
		a.steady = false
		a.table.forget()
		a.begin()
	}
}

// note notes where the experts of a batch are, which the device's queue has waited for.
func (a *ahead) note(b *weights.Batch) error {
	if a == nil {
		return nil
	}
	return a.table.note(b)
}
