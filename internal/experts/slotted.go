package experts

import (
	"fmt"

	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/submit"
	"leat/internal/weights"
)

// slotted runs experts that share slots of VRAM. When a layer's router has run, the host looks at what it chose, has missing experts
// uploaded, and runs those in VRAM meanwhile: in waves, whose products skip all experts that have no address.
type slotted struct {
	*choices
	o     Options
	x     *weights.Experts
	waves waves
	parts parts
	ahead *ahead // nil: the device can't skip dispatches
}

// parts are the command buffers of a step that is kept, for the next such step: what lies between two looks of the host at what a router
// chose. Where experts are is in memory, and what is waited for is the submission's.
//
// The first ends with the first layer's choice. Each layer that has experts has three more: a wave that others follow, which is submitted
// only where some experts are in VRAM and some are not; the last wave, with all behind it up to the next layer's choice; and, in place of both, all
// the layer's experts under a condition, see [ahead].
type parts struct {
	kept   bool
	layers []layerParts // by layer that has experts
}

const partsPerLayer = 3

// layerParts is what is known of a layer's parts: what the recorder may rely on when its waves begin, and the work of their experts
// were all of the layer's pairs in one wave.
type layerParts struct {
	wave, last kernels.Brought
	cost       [2]work // of the wave, of the last one
}

type work struct{ bytes, flops float64 }

func newSlotted(o Options, c *choices) (*slotted, error) {
	s := &slotted{choices: c, o: o, x: o.Weights.Experts()}
	c.o = &s.o
	s.waves.init(&s.o)
	s.parts.layers = make([]layerParts, c.layers)
	var err error
	s.ahead, err = newAhead(s)
	return s, err
}

// keptOf numbers the first of a layer's command buffers that are kept.
func (c *choices) keptOf(layer int) int { return 1 + partsPerLayer*c.nth[layer] }

// Begin opens the step's first command buffer.
func (s *slotted) Begin(kept bool) error {
	s.parts.kept, s.waves.early = kept, nothing
	if s.ahead != nil {
		s.ahead.begin()
	}
	if kept {
		_, err := s.o.Queue.Commands.OpenKept(0, kernels.Brought{}, false)
		return err
	}
	return s.o.Queue.Commands.Open()
}

// Run runs the experts of a layer whose router is recorded: those in VRAM at once, while the others are uploaded; these in as few waves as
// there are slots for. An expert is uploaded once a step.
func (s *slotted) Run(l Layer) error {
	if s.ahead.may() {
		return s.ahead.run(l)
	}
	if err := s.ask(l.Layer); err != nil {
		return err
	}
	w := &s.waves
	rest, err := w.first(l)
	if err != nil {
		return err
	}
	if s.parts.kept {
		s.ahead.missed(len(w.need.misses))
	}
	if err := s.wave(l, w.present, true, w.coming.Len()+len(rest) == 0); err != nil {
		return err
	}
	for w.coming.Len()+len(rest) > 0 {
		first := w.present.Len() == 0
		if err := s.submitWave(l, w.present); err != nil { // it runs while the others are uploaded
			return err
		}
		if w.coming.Len() == 0 {
			if rest, err = w.take(l.Layer, rest, w.coming, w.most(l.Layer)); err != nil {
				return err
			}
			if w.coming.Len() == 0 {
				return fmt.Errorf("layer %d: no slot is free for %d missing experts", l.Layer, len(rest))
			}
		}
		if rest, err = w.take(l.Layer, rest, w.next, w.most(l.Layer)); err != nil {
			return err
		}
		if len(rest) == 0 {
			if err := w.prefetchNext(l); err != nil {
				return err
			}
		}
		if err := s.wave(l, w.coming, first, w.next.Len()+len(rest) == 0); err != nil {
			return err
		}
		w.present, w.coming, w.next = w.coming, w.next, w.present
	}
	if err := w.prefetchNext(l); err != nil {
		return err
	}
	return s.release(w.present, s.o.Queue.Value()+1)
}

// ask submits all up to the layer's router, waits for what that chose, and counts it.
func (s *slotted) ask(layer int) error {
	q := s.o.Queue
	if err := s.ahead.close(); err != nil {
		return err
	}
	left := q.Commands.Left()
	if err := s.copyChoice(layer); err != nil {
		return err
	}
	if err := s.submit(); err != nil {
		return err
	}
	if s.parts.kept {
		if p := &s.parts.layers[s.nth[layer]]; p.wave != left {
			p.wave, p.last = left, left
		}
	}
	if err := q.Host.Hear(q.Value()); err != nil {
		return err
	}
	if err := s.ahead.settle(true); err != nil {
		return err
	}
	return s.countNeed(layer)
}

// copyChoice has a layer's choice in host memory by the end of the open command buffer.
func (s *slotted) copyChoice(layer int) error {
	if s.o.Queue.Commands.Again() {
		return nil
	}
	if s.o.Routed == nil { // else it is recorded
		if err := s.choices.record(layer); err != nil {
			return err
		}
	}
	s.o.Queue.Commands.Buffer().HostBarrier()
	return nil
}

// submit closes the open command buffer and submits all that is enqueued.
func (s *slotted) submit() error {
	if err := s.ahead.close(); err != nil {
		return err
	}
	if err := s.o.Queue.Commands.Enqueue(); err != nil {
		return err
	}
	return s.flush()
}

// flush submits what is enqueued.
func (s *slotted) flush() error {
	if err := s.ahead.tellHost(); err != nil {
		return err
	}
	if err := s.o.Queue.Commands.Flush(); err != nil {
		return err
	}
	s.ahead.submitted()
	return nil
}

// countNeed counts the pairs of the step's rows and each of a layer's experts.
func (s *slotted) countNeed(layer int) error {
	chosen, err := s.count(layer, s.waves.need.pairs)
	if err == nil && !s.o.Frame.AtHand.Kept { // else its few rows say nothing of the step's
		s.x.Counters.Needed(chosen)
	}
	return err
}

// submitWave submits the wave of a batch, which others follow, and gives the batch back.
func (s *slotted) submitWave(l Layer, b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if s.parts.kept && !s.o.Queue.Commands.Again() { // the last wave runs behind this one, or without it
		p := &s.parts.layers[s.nth[l.Layer]]
		p.last = p.last.Both(s.o.Frame.Rec.Brought())
	}
	if err := s.submit(); err != nil {
		return err
	}
	return s.release(b, s.o.Queue.Value())
}

// release gives a batch back, once the compute timeline has reached value.
func (s *slotted) release(b *weights.Batch, value uint64) error {
	if err := s.ahead.note(b); err != nil {
		return err
	}
	kept, err := b.Release(value, s.waves.keep)
	s.waves.keep -= kept
	return err
}

// openWave opens the command buffer of a wave, the layer's first or last one perhaps.
func (s *slotted) openWave(layer int, first, last bool) error {
	q := s.o.Queue
	if s.parts.kept && (first || last) {
		p, slot := &s.parts.layers[s.nth[layer]], s.keptOf(layer)
		after := p.wave
		if last {
			after, slot = p.last, slot+1
		}
		_, err := q.Commands.OpenKept(slot, after, false)
		return err
	}
	return q.Commands.Open()
}

// wave records a layer's products with the experts of a batch, its first or last one perhaps, once their uploads are submitted.
func (s *slotted) wave(l Layer, b *weights.Batch, first, last bool) error {
	if b.Len() == 0 {
		return nil
	}
	if err := s.openWave(l.Layer, first, last); err != nil {
		return err
	}
	if err := s.arrive(l, b); err != nil {
		return err
	}
	f, w, q := s.o.Frame, &s.waves, s.o.Queue
	clear(w.table)
	pairs, count := int32(0), f.Hyper.Experts.Count
	for i := range b.Len() {
		address, id, unit, err := b.At(i)
		if err != nil {
			return err
		}
		pairs += s.waves.need.pairs[id]
		for op := range l.Op.Ops {
			name := l.Op.Ops[op].Weight
			if l.Op.Ops[op].Kind != arch.MulMatID {
				continue
			}
			matrix := record.MatrixOf(l.Op, name)
			t, ok := unit.Tensor(name)
			if !ok {
				return fmt.Errorf("tensor %q is not in %s", name, unit.Name)
			}
			le.PutUint64(w.table[8*(matrix*count+id):], address+uint64(t.UnitOff))
			q.Commands.Work().WeightBytes += t.Bytes
		}
	}
	absent := 1 - float64(pairs)/float64(f.AtHand.N*f.Hyper.Experts.Used)
	f.Experts = record.ExpertTable{Address: f.At(f.Scratch.Table) + uint64(8*l.Layer*matrices*count), Last: count}
	if s.parts.kept && (first || last) {
		return s.keptWave(l, last, absent)
	}
	if err := f.Rec.Update(s.o.Scratch, s.tableOff(l.Layer), w.table); err != nil {
		return err
	}
	record.SetAbsent(f, absent)
	err := f.EachSpan(l.Op, &s.o.Plan.Units[l.Unit])
	record.SetAbsent(f, 0)
	return err
}

func (s *slotted) tableOff(layer int) int64 {
	return s.o.Frame.Scratch.Table.Off + int64(8*layer*matrices*s.o.Frame.Hyper.Experts.Count)
}

// keptWave is a wave whose command buffer is kept, and leaves out a share, absent, of the layer's pairs of rows and experts: the host writes where its experts are to memory, from where it is copied. There are two
// such places, as a wave and the last one of a layer may both be under way; those of the layer before are over.
func (s *slotted) keptWave(l Layer, last bool, absent float64) error {
	f, q, which := s.o.Frame, s.o.Queue, 0
	if last {
		which = 1
	}
	from := s.waveTable(which)
	copy(s.o.Inputs.Mapped()[from:], s.waves.table)
	cost := &s.parts.layers[s.nth[l.Layer]].cost[which]
	if !q.Commands.Again() {
		bytes, flops := f.Rec.Cost()
		if err := f.Rec.Copy(s.o.Scratch, s.tableOff(l.Layer), s.o.Inputs, from, int64(len(s.waves.table))); err != nil {
			return err
		}
		cuts := q.Commands.Cuts()
		if err := f.EachSpan(l.Op, &s.o.Plan.Units[l.Unit]); err != nil || q.Commands.Cuts() > cuts {
			return err
		}
		cost.bytes, cost.flops = f.Rec.Cost()
		cost.bytes -= bytes
		cost.flops -= flops
	}
	q.Commands.Charge(-absent*cost.bytes, -absent*cost.flops)
	return nil
}

// waveTable is where the inputs have the addresses of a kept wave's experts.
func (s *slotted) waveTable(which int) int64 {
	t := &s.o.Frame.Scratch.Table
	return t.Off + t.Bytes + int64(8*which*matrices*s.o.Frame.Hyper.Experts.Count)
}

// InputBytes is the size of a step's inputs in host memory with what a runner needs of them, behind the plan's Table.
func InputBytes(p *plan.Plan, h *arch.Hyper) int64 {
	t := &p.Scratch.Table
	return t.Off + t.Bytes + int64(8*2*matrices*h.Experts.Count) + p.Scratch.There.Bytes
}

// arrive waits until a batch's uploads are submitted, and has the submission being recorded wait for their bytes.
func (s *slotted) arrive(l Layer, b *weights.Batch) error {
	q := s.o.Queue
	if !b.Arrived() {
		waited, err := q.Host.Blocked(b.Arrive)
		q.Commands.Work().Waited, q.Commands.Work().Awaits = waited, l.Unit
		if err != nil {
			return err
		}
	}
	s.waves.points = b.Waits(s.waves.points[:0])
	q.Commands.Wait(s.waves.points, l.Unit)
	return nil
}

// End ends what is recorded of the step and submits it.
func (s *slotted) End() error {
	if err := s.submit(); err != nil {
		return err
	}
	return s.ahead.settle(true)
}

// Over is called when the device has ended the step.
func (s *slotted) Over() error {
	s.ahead.over(s.parts.kept && s.o.Queue.Commands.Cuts() == 0)
	return s.tell()
}

// Abort forgets a step that failed or was stopped.
func (s *slotted) Abort() { s.ahead.abort() }

// Replan goes on with another plan, between two steps.
func (s *slotted) Replan(p *plan.Plan) { s.o.Plan = p }

// RunsConditionally reports whether layers can run without asking the host.
func (s *slotted) RunsConditionally() bool { return s.ahead != nil }

// RunConditionally sets [Options.ConditionalBelow].
func (s *slotted) RunConditionally(below float64) { s.o.ConditionalBelow = below }

// Ran counts time that the device stood idle for want of experts.
func (s *slotted) Ran(r *submit.Ran) {
	if r.Awaits != submit.Nothing && IsSlotted(&s.o.Plan.Units[r.Awaits]) {
		s.x.Counters.Idle(max(0, r.Idle))
	}
}

// Close frees host memory.
func (s *slotted) Close() { s.choices.close(s.o.Host) }
