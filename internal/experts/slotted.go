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

// slotted is the runner for experts that share slots of VRAM. After a layer's router has run, the host reads which experts it chose, uploads the missing
// ones, and meanwhile runs those in VRAM. So a layer runs in waves; in each wave, kernels skip the experts without an address.
type slotted struct {
	*choices
	o           Options          // the options; Replan changes Plan, SetConditionalBelow changes ConditionalBelow
	x           *weights.Experts // the slots
	waves       waves            // the batches of the current layer
	segments    segments         // the kept command buffers
	conditional *conditional     // runs layers conditionally; nil: the device or the options rule that out
}

// segments describes the command buffers of one-row steps that are kept, so that later steps submit them again. Each is a segment of a step, which
// is split where the host reads a router's choice. They do not depend on where experts are: addresses are read from memory, and waits belong to
// submissions. [submit.Commands] keeps the command buffers and knows which are recorded.
//
// Segment 0 ends with the first choice. Each layer with experts has segmentsPerLayer more: its first wave, submitted only if some experts
// are in VRAM and some are not; its last wave, with all commands up to the next choice; and the layer run conditionally, see [conditional].
type segments struct {
	kept   bool         // the current step consists of kept command buffers: it records them, or submits those of an earlier step
	layers []layerWaves // by index of the layer among those with experts
}

// segmentsPerLayer is the number of segments that each layer with experts has.
const segmentsPerLayer = 3

// layerWaves describes the segments of a layer's first and last wave: the quantized inputs that they may read, and their work.
type layerWaves struct {
	first, last kernels.Quantised // inputs, quantized by earlier commands, that the first and the last wave may read
	cost        [2]work           // work of the first and of the last wave, if each had all pairs of rows and experts; see recordKeptWave
}

// work is an amount of memory traffic, in bytes, and of floating-point operations, for [submit.Commands.Charge].
type work struct{ bytes, flops float64 }

// newSlotted makes a runner that uses the buffer of c. It runs a test on the device to find out whether layers can run conditionally.
func newSlotted(o Options, c *choices) (*slotted, error) {
	s := &slotted{choices: c, o: o, x: o.Weights.Experts()}
	c.o = &s.o
	s.waves.init(&s.o)
	s.segments.layers = make([]layerWaves, c.layers)
	var err error
	s.conditional, err = newConditional(s)
	return s, err
}

// segmentSlot is the slot, for [submit.Commands.OpenKept], of a layer's first segment.
func (c *choices) segmentSlot(layer int) int { return 1 + segmentsPerLayer*c.nth[layer] }

// Begin forgets the state of the last step, and opens the first command buffer of a step. With kept the whole step uses kept command buffers, and the first
// is segment 0.
func (s *slotted) Begin(kept bool) error {
	s.segments.kept, s.waves.prefetched = kept, noLayer
	if s.conditional != nil {
		s.conditional.begin()
	}
	if kept {
		_, err := s.o.Queue.Commands.OpenKept(0, kernels.Quantised{}, false)
		return err
	}
	return s.o.Queue.Commands.Open()
}

// Run runs the experts of a layer. If they can't run conditionally, it submits all commands, waits for the router's choice, and runs them in
// waves: first those in VRAM, while others are uploaded, then the others, in as few waves as the slots allow. It uploads an expert at most once a step,
// prefetches experts of the next layer for a long prompt, and leaves the last wave's command buffer open.
func (s *slotted) Run(l Layer) error {
	if s.conditional.mayRun() {
		return s.conditional.runLayer(l)
	}
	if err := s.waitForChoice(l.Layer); err != nil {
		return err
	}
	w := &s.waves
	untaken, err := w.takeFirst(l)
	if err != nil {
		return err
	}
	if s.segments.kept {
		s.conditional.noteMisses(len(w.need.misses))
	}
	if err := s.recordWave(l, w.present, true, w.coming.Len()+len(untaken) == 0); err != nil {
		return err
	}
	for w.coming.Len()+len(untaken) > 0 {
		first := w.present.Len() == 0
		if err := s.submitWave(l, w.present); err != nil { // the wave runs while other experts are uploaded
			return err
		}
		if w.coming.Len() == 0 {
			if untaken, err = w.take(l.Layer, untaken, w.coming, w.waveSize(l.Layer)); err != nil {
				return err
			}
			if w.coming.Len() == 0 {
				return fmt.Errorf("layer %d: no slot is free for %d missing experts", l.Layer, len(untaken))
			}
		}
		if untaken, err = w.take(l.Layer, untaken, w.next, w.waveSize(l.Layer)); err != nil {
			return err
		}
		if len(untaken) == 0 {
			if err := w.prefetchNext(l); err != nil {
				return err
			}
		}
		if err := s.recordWave(l, w.coming, first, w.next.Len()+len(untaken) == 0); err != nil {
			return err
		}
		w.present, w.coming, w.next = w.coming, w.next, w.present
	}
	if err := w.prefetchNext(l); err != nil {
		return err
	}
	return s.release(w.present, s.o.Queue.Value()+1)
}

// waitForChoice submits all commands up to the layer's router, waits for the router's choice and for all conditional layers, and counts the pairs of
// rows and experts. In a kept step it notes which quantized inputs the layer's waves may read.
func (s *slotted) waitForChoice(layer int) error {
	q := s.o.Queue
	if err := s.conditional.endLayer(); err != nil {
		return err
	}
	left := q.Commands.Quantised()
	if err := s.copyChoice(layer); err != nil {
		return err
	}
	if err := s.submit(); err != nil {
		return err
	}
	if s.segments.kept {
		if p := &s.segments.layers[s.nth[layer]]; p.first != left {
			p.first, p.last = left, left
		}
	}
	if err := q.Host.AwaitPolling(q.Value()); err != nil {
		return err
	}
	if err := s.conditional.awaitOutcomes(true); err != nil {
		return err
	}
	return s.countNeed(layer)
}

// copyChoice records a copy of a layer's choice, and a barrier that makes it visible to the host, into the open command buffer. It records nothing if that
// command buffer is from an earlier step. With Options.Routed it records only the barrier, because RouterRecorded has recorded the copy.
func (s *slotted) copyChoice(layer int) error {
	if s.o.Queue.Commands.Again() {
		return nil
	}
	if s.o.Routed == nil { // else RouterRecorded has recorded the copy
		if err := s.choices.recordCopy(layer); err != nil {
			return err
		}
	}
	s.o.Queue.Commands.Buffer().HostBarrier()
	return nil
}

// submit ends a conditional section if one is open, closes the command buffer, and submits it with all enqueued ones.
func (s *slotted) submit() error {
	if err := s.conditional.endLayer(); err != nil {
		return err
	}
	if err := s.o.Queue.Commands.Enqueue(); err != nil {
		return err
	}
	return s.flush()
}

// flush submits the enqueued command buffers, with a barrier for the host after conditional layers.
func (s *slotted) flush() error {
	if err := s.conditional.enqueueHostBarrier(); err != nil {
		return err
	}
	if err := s.o.Queue.Commands.Flush(); err != nil {
		return err
	}
	s.conditional.submitted()
	return nil
}

// countNeed reads a layer's choice, which the device has written, and sets need.pairs to the number of rows that chose each expert. It counts
// the chosen experts in the slots' Counters, unless the layer computes only the rows whose logits are needed.
func (s *slotted) countNeed(layer int) error {
	chosen, err := s.countPairs(layer, s.waves.need.pairs)
	if err == nil && !s.o.Frame.StepRows.OnlyLogitRows { // those rows are too few to be representative
		s.x.Counters.CountLayer(chosen)
	}
	return err
}

// submitWave submits the wave of a batch, if it has experts, and releases the batch. It is not for the last wave of a layer, whose command
// buffer stays open. If this wave was just recorded into a segment, the last wave may read only inputs that are quantized whether or not this one runs.
func (s *slotted) submitWave(l Layer, b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if s.segments.kept && !s.o.Queue.Commands.Again() { // the last wave may run after this one, or without it
		p := &s.segments.layers[s.nth[l.Layer]]
		p.last = p.last.Common(s.o.Frame.Rec.Quantised())
	}
	if err := s.submit(); err != nil {
		return err
	}
	return s.release(b, s.o.Queue.Value())
}

// release notes a batch's addresses in the host's copy of the table of experts, see [residentTable.noteBatch], and empties the batch. Its slots
// may be reused once the compute timeline has reached value. Up to waves.keep of the experts uploaded for it stay in slots, and are subtracted from keep; the
// others are evicted.
func (s *slotted) release(b *weights.Batch, value uint64) error {
	if err := s.conditional.noteBatch(b); err != nil {
		return err
	}
	kept, err := b.Release(value, s.waves.keep)
	s.waves.keep -= kept
	return err
}

// openWave opens the command buffer of a wave. In a kept step it is a segment for the first and the last wave of a layer. All other waves have temporary
// command buffers.
func (s *slotted) openWave(layer int, first, last bool) error {
	q := s.o.Queue
	if s.segments.kept && (first || last) {
		p, slot := &s.segments.layers[s.nth[layer]], s.segmentSlot(layer)
		after := p.first
		if last {
			after, slot = p.last, slot+1
		}
		_, err := q.Commands.OpenKept(slot, after, false)
		return err
	}
	return q.Commands.Open()
}

// recordWave opens a command buffer and records a layer's products with the experts of a batch, if it has any. It waits until the experts' uploads
// are submitted, and writes their addresses to the device's table. first and last say which wave of the layer it is, see [slotted.openWave].
func (s *slotted) recordWave(l Layer, b *weights.Batch, first, last bool) error {
	if b.Len() == 0 {
		return nil
	}
	if err := s.openWave(l.Layer, first, last); err != nil {
		return err
	}
	if err := s.awaitUploads(l, b); err != nil {
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
		matrix := 0
		for k := range l.Op.Ops {
			product := &l.Op.Ops[k]
			if product.Kind != arch.MulMatID {
				continue
			}
			off, t, err := record.MatrixOff(unit, product)
			if err != nil {
				return err
			}
			le.PutUint64(w.table[8*(matrix*count+id):], address+off)
			if product.Row == 0 { // parts of a tensor are read with its first
				q.Commands.Work().WeightBytes += t.Bytes
			}
			matrix++
		}
	}
	absent := 1 - float64(pairs)/float64(f.StepRows.N*f.Hyper.Experts.Used)
	f.Experts = record.ExpertTable{Address: f.At(f.Scratch.ExpertTable) + uint64(8*l.Layer*matrices*count), Last: count}
	if s.segments.kept && (first || last) {
		return s.recordKeptWave(l, last, absent)
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

// recordKeptWave writes the experts' addresses to the inputs. Unless the wave's segment was recorded in an earlier step, it records it: a copy of the
// addresses from there, and the wave. The first and the last wave have separate tables in the inputs, because both may be running. absent is the share of
// the layer's (row, expert) pairs that the wave leaves out: their work is subtracted from the segment's.
func (s *slotted) recordKeptWave(l Layer, last bool, absent float64) error {
	f, q, which := s.o.Frame, s.o.Queue, 0
	if last {
		which = 1
	}
	from := s.waveTableOff(which)
	copy(s.o.Inputs.Mapped()[from:], s.waves.table)
	cost := &s.segments.layers[s.nth[l.Layer]].cost[which]
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

// waveTableOff is the offset in the inputs of the expert addresses of a layer's first wave (which is 0) or last wave (1) in a kept step; all layers
// share these two tables. With which 2 it is the end of the second table, where the host's copy of the [residentTable] begins.
func (s *slotted) waveTableOff(which int) int64 {
	t := &s.o.Frame.Scratch.ExpertTable
	return t.Off + t.Bytes + int64(8*which*matrices*s.o.Frame.Hyper.Experts.Count)
}

// InputBytes is the size to allocate for a step's inputs in host memory: the inputs that the plan lays out, up to the end of its ExpertTable, then
// the runner's tables of addresses.
func InputBytes(p *plan.Plan, h *arch.Hyper) int64 {
	t := &p.Scratch.ExpertTable
	return t.Off + t.Bytes + int64(8*2*matrices*h.Experts.Count) + p.Scratch.Residents.Bytes
}

// awaitUploads waits until a batch's uploads are submitted, and makes the next submission wait on the device for their end.
func (s *slotted) awaitUploads(l Layer, b *weights.Batch) error {
	q := s.o.Queue
	if !b.UploadsSubmitted() {
		waited, err := q.Host.TimedWait(b.SubmitUploads)
		q.Commands.Work().Waited, q.Commands.Work().Awaits = waited, l.Unit
		if err != nil {
			return err
		}
	}
	s.waves.uploads = b.Waits(s.waves.uploads[:0])
	q.Commands.Wait(s.waves.uploads, l.Unit)
	return nil
}

// End submits all commands that are not submitted yet. It waits for conditional layers, and submits skipped ones again until all have run.
func (s *slotted) End() error {
	if err := s.submit(); err != nil {
		return err
	}
	return s.conditional.awaitOutcomes(true)
}

// Over is called when the device has ended the step. It notes whether the step was kept and none of its command buffers was cut: only then may
// layers of the next step run conditionally. Then it calls Options.Routed.
func (s *slotted) Over() error {
	s.conditional.setSteady(s.segments.kept && s.o.Queue.Commands.Cuts() == 0)
	return s.callRouted()
}

// Abort drops the state of conditional layers, after a step that failed or was stopped; [weights.Store.Abort] empties the batches.
func (s *slotted) Abort() { s.conditional.abort() }

// Replan switches to another plan, between two steps; it changes no other state.
func (s *slotted) Replan(p *plan.Plan) { s.o.Plan = p }

// CanRunConditionally reports whether layers can run conditionally, without asking the host.
func (s *slotted) CanRunConditionally() bool { return s.conditional != nil }

// SetConditionalBelow sets [Options.ConditionalBelow], the miss rate below which layers run conditionally.
func (s *slotted) SetConditionalBelow(below float64) { s.o.ConditionalBelow = below }

// Ran counts the time that the device was idle before r, if r waited for experts.
func (s *slotted) Ran(r *submit.Ran) {
	if r.Awaits != submit.NoPart && IsSlotted(&s.o.Plan.Units[r.Awaits]) {
		s.x.Counters.CountIdle(max(0, r.Idle))
	}
}

// Close frees host memory.
func (s *slotted) Close() { s.choices.close(s.o.Host) }
