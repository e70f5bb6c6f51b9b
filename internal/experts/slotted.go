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

// slotted is the runner for experts that share slots of VRAM. After a layer's router has run, the host reads the chosen experts, uploads
// the missing ones, and meanwhile runs those in VRAM: in waves, each of which skips experts without an address.
type slotted struct {
	*choices
	o     Options          // Plan changes with Replan, ConditionalBelow with RunConditionally
	x     *weights.Experts // the slots
	waves waves            // the batches of the current layer
	parts parts            // the kept command buffers
	ahead *ahead           // nil: the device can't skip dispatches
}

// parts describes the kept command buffers, which later one-row steps submit again. Expert addresses are read from memory, and waits
// belong to the submission, so neither is recorded.
//
// Kept buffer 0 ends with the first choice. Each layer with experts has partsPerLayer more: its first wave, submitted only if some experts
// are in VRAM and some are not; its last wave, with all commands up to the next choice; and the layer run conditionally, see [ahead].
type parts struct {
	kept   bool         // the current step's command buffers are kept
	layers []layerParts // by layer with experts
}

const partsPerLayer = 3

// layerParts has, for the first wave of a layer and for its last, the inputs already quantized when it begins, and its work.
type layerParts struct {
	wave, last kernels.Quantised // inputs, quantized by earlier commands, that the first and the last wave may read
	cost       [2]work           // work of the first and of the last wave, if each had all pairs of rows and experts
}

// work is an amount of memory traffic and arithmetic.
type work struct{ bytes, flops float64 }

// newSlotted makes a runner that uses c, and tests whether the device can run layers conditionally.
func newSlotted(o Options, c *choices) (*slotted, error) {
	s := &slotted{choices: c, o: o, x: o.Weights.Experts()}
	c.o = &s.o
	s.waves.init(&s.o)
	s.parts.layers = make([]layerParts, c.layers)
	var err error
	s.ahead, err = newAhead(s)
	return s, err
}

// keptSlot is the slot, for [submit.Commands.OpenKept], of the first of a layer's kept command buffers.
func (c *choices) keptSlot(layer int) int { return 1 + partsPerLayer*c.nth[layer] }

// Begin opens the step's first command buffer, the kept one if kept.
func (s *slotted) Begin(kept bool) error {
	s.parts.kept, s.waves.prefetched = kept, nothing
	if s.ahead != nil {
		s.ahead.begin()
	}
	if kept {
		_, err := s.o.Queue.Commands.OpenKept(0, kernels.Quantised{}, false)
		return err
	}
	return s.o.Queue.Commands.Open()
}

// Run runs the experts of a layer, conditionally or in waves: first the experts in VRAM, while the others are uploaded; then the others, in
// as few waves as the slots allow. Each expert is uploaded at most once a step.
func (s *slotted) Run(l Layer) error {
	if s.ahead.mayRun() {
		return s.ahead.run(l)
	}
	if err := s.waitForChoice(l.Layer); err != nil {
		return err
	}
	w := &s.waves
	rest, err := w.takeFirst(l)
	if err != nil {
		return err
	}
	if s.parts.kept {
		s.ahead.noteMisses(len(w.need.misses))
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
			if rest, err = w.take(l.Layer, rest, w.coming, w.waveSize(l.Layer)); err != nil {
				return err
			}
			if w.coming.Len() == 0 {
				return fmt.Errorf("layer %d: no slot is free for %d missing experts", l.Layer, len(rest))
			}
		}
		if rest, err = w.take(l.Layer, rest, w.next, w.waveSize(l.Layer)); err != nil {
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

// waitForChoice submits all commands up to the layer's router, waits for its choice, and counts the pairs of rows and experts.
func (s *slotted) waitForChoice(layer int) error {
	q := s.o.Queue
	if err := s.ahead.endLayer(); err != nil {
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

// copyChoice records a copy of a layer's choice, and a barrier that makes it visible to the host, at the end of the open command buffer.
func (s *slotted) copyChoice(layer int) error {
	if s.o.Queue.Commands.Again() {
		return nil
	}
	if s.o.Routed == nil { // else Chosen has recorded the copy
		if err := s.choices.record(layer); err != nil {
			return err
		}
	}
	s.o.Queue.Commands.Buffer().HostBarrier()
	return nil
}

// submit closes the open command buffer and submits it with all enqueued ones.
func (s *slotted) submit() error {
	if err := s.ahead.endLayer(); err != nil {
		return err
	}
	if err := s.o.Queue.Commands.Enqueue(); err != nil {
		return err
	}
	return s.flush()
}

// flush submits the enqueued command buffers.
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

// countNeed sets need.pairs to the number of rows that chose each expert of a layer.
func (s *slotted) countNeed(layer int) error {
	chosen, err := s.count(layer, s.waves.need.pairs)
	if err == nil && !s.o.Frame.AtHand.Kept { // the gathered rows that want logits are not representative
		s.x.Counters.Needed(chosen)
	}
	return err
}

// submitWave submits the wave of a batch, if it has experts, and releases the batch. The layer has more waves.
func (s *slotted) submitWave(l Layer, b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if s.parts.kept && !s.o.Queue.Commands.Again() { // the last wave may run after this one, or without it
		p := &s.parts.layers[s.nth[l.Layer]]
		p.last = p.last.Common(s.o.Frame.Rec.Quantised())
	}
	if err := s.submit(); err != nil {
		return err
	}
	return s.release(b, s.o.Queue.Value())
}

// release empties a batch: its slots may be reused once the compute timeline has reached value.
func (s *slotted) release(b *weights.Batch, value uint64) error {
	if err := s.ahead.note(b); err != nil {
		return err
	}
	kept, err := b.Release(value, s.waves.keep)
	s.waves.keep -= kept
	return err
}

// openWave opens the command buffer of a wave. In a kept step, the layer's first and last waves have kept ones.
func (s *slotted) openWave(layer int, first, last bool) error {
	q := s.o.Queue
	if s.parts.kept && (first || last) {
		p, slot := &s.parts.layers[s.nth[layer]], s.keptSlot(layer)
		after := p.wave
		if last {
			after, slot = p.last, slot+1
		}
		_, err := q.Commands.OpenKept(slot, after, false)
		return err
	}
	return q.Commands.Open()
}

// wave records a layer's products with the experts of a batch, once their uploads are submitted. first and last say which wave it is.
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
	f.Experts = record.ExpertTable{Address: f.At(f.Scratch.ExpertTable) + uint64(8*l.Layer*matrices*count), Last: count}
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

// tableOff is the offset in the scratch of a layer's table of expert addresses.
func (s *slotted) tableOff(layer int) int64 {
	return s.o.Frame.Scratch.ExpertTable.Off + int64(8*layer*matrices*s.o.Frame.Hyper.Experts.Count)
}

// keptWave records a wave into a kept command buffer, which copies the experts' addresses from the inputs; the first and the last wave have
// a table each there, as both may be running. absent is the share of the layer's pairs of rows and experts that the wave leaves out.
func (s *slotted) keptWave(l Layer, last bool, absent float64) error {
	f, q, which := s.o.Frame, s.o.Queue, 0
	if last {
		which = 1
	}
	from := s.waveTableOff(which)
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

// waveTableOff is the offset in the inputs of the addresses of a kept wave: 0 the first wave, 1 the last. 2 is the end of both.
func (s *slotted) waveTableOff(which int) int64 {
	t := &s.o.Frame.Scratch.ExpertTable
	return t.Off + t.Bytes + int64(8*which*matrices*s.o.Frame.Hyper.Experts.Count)
}

// InputBytes is the size to allocate for a step's inputs in host memory: those the plan lays out, up to the end of its Table, then the
// runner's tables of addresses.
func InputBytes(p *plan.Plan, h *arch.Hyper) int64 {
	t := &p.Scratch.ExpertTable
	return t.Off + t.Bytes + int64(8*2*matrices*h.Experts.Count) + p.Scratch.Residents.Bytes
}

// arrive waits until a batch's uploads are submitted, and has the next submission wait on the device for their end.
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

// End submits the rest of the step, and submits skipped layers again until all have run.
func (s *slotted) End() error {
	if err := s.submit(); err != nil {
		return err
	}
	return s.ahead.settle(true)
}

// Over notes whether the next step may run conditionally, and calls Options.Routed.
func (s *slotted) Over() error {
	s.ahead.setSteady(s.parts.kept && s.o.Queue.Commands.Cuts() == 0)
	return s.tell()
}

// Abort drops the state of a step that failed or was stopped.
func (s *slotted) Abort() { s.ahead.abort() }

// Replan switches to another plan, between two steps.
func (s *slotted) Replan(p *plan.Plan) { s.o.Plan = p }

// RunsConditionally reports whether the device can run layers without asking the host.
func (s *slotted) RunsConditionally() bool { return s.ahead != nil }

// RunConditionally sets [Options.ConditionalBelow].
func (s *slotted) RunConditionally(below float64) { s.o.ConditionalBelow = below }

// Ran counts the time that the device was idle while it waited for experts.
func (s *slotted) Ran(r *submit.Ran) {
	if r.Awaits != submit.Nothing && IsSlotted(&s.o.Plan.Units[r.Awaits]) {
		s.x.Counters.Idle(max(0, r.Idle))
	}
}

// Close frees host memory.
func (s *slotted) Close() { s.choices.close(s.o.Host) }
