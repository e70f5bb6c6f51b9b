package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/experts"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/weights"
	"leat/shaders"
)

// run submits the step, and does not wait for its end. A step whose key equals that of the kept step submits the kept commands again: as a whole or, with
// experts in slots, segment by segment in [pass.forward]. Otherwise run records the step, and keeps its commands instead if its key is not zero.
func (p *pass) run() error {
	defer p.s.queue.Host.Pause()
	p.s.Weights.Begin(p.needsHead())
	key := p.keptKey()
	p.keepSegments = key.inSegments
	if key != p.s.kept && key != (keptKey{}) {
		p.s.queue.ForgetKept()
		p.s.kept = key
	}
	if key != (keptKey{}) && !key.inSegments && p.s.queue.CanRepeat() {
		return p.repeat()
	}
	if err := p.forward(); err != nil {
		return err
	}
	if key != (keptKey{}) && !key.inSegments {
		p.s.queue.KeepStep()
	}
	return nil
}

// forward goes through the units of a forward pass, from the inputs to the outputs, and records and submits it. While an open segment was
// recorded in an earlier step, it records nothing, and the segment is submitted again.
func (p *pass) forward() error {
	if err := p.s.experts.Begin(p.keepSegments); err != nil {
		return err
	}
	if err := p.embed(); err != nil {
		return err
	}
	for i := range p.s.Plan.Units {
		if err := p.unit(i); err != nil {
			return fmt.Errorf("%s: %w", p.s.Plan.Units[i].Name, err)
		}
	}
	if err := p.output(); err != nil {
		return err
	}
	return p.s.experts.End()
}

// needsHead reports whether any logits are to be computed.
func (p *pass) needsHead() bool { return len(p.logitRows) > 0 && p.want != WantHidden }

// unit waits until unit i has a place, records its operations, and releases the place. It leaves out the pieces of the head if no logits are
// needed.
func (p *pass) unit(i int) error {
	u := &p.s.Plan.Units[i]
	if u.Kind == pack.Head && !p.needsHead() {
		return nil
	}
	placed, err := p.place(i)
	if err != nil {
		return err
	}
	p.unitIndex, p.s.frame.Layer = i, u.Layer
	p.s.queue.Commands.Enter(i)
	switch u.Kind {
	case pack.Global:
		err = p.recordInput()
	case pack.Layer, pack.Experts:
		err = p.layer(i)
	case pack.Head:
		err = p.headPiece(i)
	}
	if err == nil && lastBeforeHead(p.s.Plan.Units, i) {
		err = p.headInput()
	}
	if err != nil {
		return err
	}
	return p.release(i, placed)
}

// layer records the operations assigned to unit i, in order. It records them for each span of rows in turn, except for operations that must be recorded
// for all rows together, see [ofAllRows].
func (p *pass) layer(i int) error {
	ops := p.s.ops.units[i]
	for len(ops) > 0 && p.s.frame.StepRows.N > 0 { // after keepLogitRows there may be no rows
		n := 0
		for n < len(ops) && !ofAllRows(ops[n].Kind) {
			n++
		}
		if err := p.recordSpans(i, ops[:n]); err != nil {
			return err
		}
		if n == len(ops) {
			return nil
		}
		if err := p.recordAllRows(i, &ops[n]); err != nil {
			return err
		}
		ops = ops[n+1:]
	}
	return nil
}

// recordSpans records operations once for each span of rows, unless the open command buffer was recorded in an earlier step. If one of them is a router, it
// then tells the runner of experts.
func (p *pass) recordSpans(i int, ops []arch.Op) error {
	f, routes := &p.s.frame, false
	if len(ops) == 0 || p.s.queue.Commands.Again() {
		return nil
	}
	for _, span := range f.StepRows.Spans {
		f.SetRows(span)
		for k := range ops {
			if err := f.Op(&ops[k]); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(ops[k].Weights(), ", "), err)
			}
			routes = routes || ops[k].Kind == arch.Route || ops[k].Kind == arch.NormedRoute
		}
	}
	if routes {
		return p.s.experts.RouterRecorded(p.s.Plan.Units[i].Layer)
	}
	return nil
}

// ofAllRows reports whether an operation must be recorded for all rows of the step together. Operations with a sequence's state do: they read the state
// from before the step once, so one dispatch must have all rows of a sequence. Experts and KeepLogitRows handle the spans themselves.
func ofAllRows(k arch.Kind) bool {
	return k == arch.Experts || k == arch.KeepLogitRows || k.CarriesState()
}

// recordAllRows records an operation of unit i for which [ofAllRows] holds.
func (p *pass) recordAllRows(i int, o *arch.Op) error {
	switch o.Kind {
	case arch.KeepLogitRows:
		return p.keepLogitRows(o.Values)
	case arch.Experts:
		return p.s.experts.Run(experts.Layer{Unit: i, Layer: p.s.Plan.Units[i].Layer, Op: o})
	}
	if p.s.queue.Commands.Again() {
		return nil
	}
	f := &p.s.frame
	f.SetRows(record.Rows{N: f.StepRows.N, Role: Prompt}) // these operations have only one variant, so the role does not matter
	return f.Op(o)
}

// keepLogitRows records the operation [arch.KeepLogitRows], within the last layer. If Batch.OnlyLogitRows is set, it gathers the values of the rows whose
// logits are needed, and the rest of the layer computes only these rows. In either case these rows have the role Decode from then on.
func (p *pass) keepLogitRows(values []arch.Value) error {
	f := &p.s.frame
	if p.s.queue.Commands.Again() { // such a step has only one row
		return nil
	}
	if !f.Batch.OnlyLogitRows {
		f.StepRows.Spans = spans(f.StepRows.Spans[:0], p.rows, p.logitRows)
		return nil
	}
	if err := f.GatherLogitRows(values, len(p.logitRows)); err != nil {
		return err
	}
	for _, row := range p.logitRows {
		p.gathered = append(p.gathered, p.rows[row])
		p.gathered[len(p.gathered)-1].Role = Decode
	}
	p.rows = p.gathered
	f.StepRows.Spans, f.StepRows.N, f.StepRows.OnlyLogitRows = spans(f.StepRows.Spans[:0], p.rows, nil), len(p.rows), true
	return nil
}

// place waits until unit i has a place whose upload is submitted. It then submits the commands recorded so far, which need not wait for the upload, and
// makes the next submission wait for it. It does nothing for experts in slots, which get places when they run, and for command buffers of an earlier
// step, whose units are all in VRAM.
func (p *pass) place(i int) (placed weights.Place, err error) {
	q := p.s.queue
	if experts.IsSlotted(&p.s.Plan.Units[i]) {
		return placed, nil
	}
	if q.Commands.Again() { // the commands have run in an earlier step, so the unit is in VRAM
		q.Commands.Work().WeightBytes += p.bytesRead(i)
		return placed, nil
	}
	waited, err := p.acquire(i, &placed)
	if err != nil {
		return placed, err
	}
	points := p.s.Weights.Units().Waits(placed, p.s.inputs.uploads[:0])
	p.s.inputs.uploads = points
	if len(points) > 0 {
		if err := q.Commands.Cut(); err != nil { // the commands recorded so far need not wait for the upload
			return placed, err
		}
		// The upload begins after placed.After: a submission made earlier would only wait on the device.
		if err := q.Host.Await(placed.After); err != nil {
			return placed, err
		}
		q.Commands.Wait(points, i)
	}
	if waited > 0 {
		q.Commands.Work().Awaits, q.Commands.Work().Waited = i, waited
	}
	q.Commands.Work().WeightBytes += p.bytesRead(i)
	p.s.bases[i] = placed.Address()
	return placed, nil
}

// bytesRead is how many bytes of unit i the step reads. It is 0 for the output norm if no row needs logits.
func (p *pass) bytesRead(i int) int64 {
	if u := &p.s.Plan.Units[i]; u.Kind != pack.Norm || len(p.logitRows) > 0 {
		return u.Bytes
	}
	return 0
}

// release ends the recording of unit i. For a streamed unit it submits the recorded commands, and lets the ring reuse the place once the device has
// read the unit. For other units it submits only if the open command buffer is full, and never in a step that is kept in segments.
func (p *pass) release(i int, placed weights.Place) error {
	q := p.s.queue
	if placed.Streamed {
		if err := q.Commands.Submit(); err != nil {
			return err
		}
		p.s.Weights.Units().Release(q.Value())
		q.Commands.Leave()
		return q.Commands.Open()
	}
	q.Commands.Leave()
	if !p.keepSegments && !experts.IsSlotted(&p.s.Plan.Units[i]) && q.Commands.Full() {
		return q.Commands.Cut()
	}
	return nil
}

// tensor finds a weight of the unit being recorded, or of the first unit if that is of weights outside the layers, and its device address.
func (p *pass) tensor(name string) (*pack.Tensor, uint64, error) {
	at, units := p.unitIndex, p.s.Plan.Units
	t, ok := units[at].Tensor(name)
	if !ok && units[0].Kind == pack.Global {
		at = 0
		t, ok = units[0].Tensor(name)
	}
	if !ok {
		return nil, 0, fmt.Errorf("tensor %q is not in %s", name, units[p.unitIndex].Name)
	}
	return t, p.s.bases[at] + uint64(t.UnitOff), nil
}

// keptKey is everything that a step's recorded commands depend on: a later step can submit them again if its key is equal. The zero key means
// that the commands cannot be kept.
type keptKey struct {
	plan           *plan.Plan   // where weights are
	want           Want         // what the step computes
	logits         bool         // its row needs logits
	role           kernels.Role // role of its row
	inSegments     bool         // experts are in slots: the commands are kept in segments, split where the host reads a choice; false: as a whole
	maxPages       int          // length of a row of the page table
	attentionParts int          // parts that attention splits the positions into
}

// keptKey is the key of this step's commands. It is the zero key if they cannot be kept: in steps of several rows, at position 0, or with streamed
// units; while steps are traced or slowed down, or kernels are timed; and if Options.Routed is set.
func (p *pass) keptKey() keptKey {
	if len(p.rows) != 1 || p.rows[0].Position == 0 || p.s.Trace != nil || p.s.Ops != nil || p.s.Routed != nil || p.s.ReadRate != nil ||
		p.s.Pacer != nil && p.s.Pacer.Active() {
		return keptKey{}
	}
	for i := range p.s.Plan.Units {
		if u := &p.s.Plan.Units[i]; !u.Resident() && !experts.IsSlotted(u) {
			return keptKey{}
		}
	}
	return keptKey{p.s.Plan, p.want, len(p.logitRows) > 0, p.rows[0].Role, p.s.Weights.Experts() != nil, p.s.frame.Batch.MaxPages, (p.rows[0].Position + shaders.PartPositions) / shaders.PartPositions}
}

// repeat writes this step's inputs and submits the last step's commands again, as a whole.
func (p *pass) repeat() error {
	if _, err := p.writeInputs(); err != nil {
		return err
	}
	return p.s.queue.Repeat()
}

// acquire sets placed to the place of unit i, by [weights.Units.Acquire], and returns how long it waited. If it has to wait, it first submits the commands
// recorded so far, so that the device has work.
func (p *pass) acquire(i int, placed *weights.Place) (waited time.Duration, err error) {
	q := p.s.queue
	if p.s.Weights.Units().UploadSubmitted(i) {
		*placed, err = p.s.Weights.Units().Acquire(q.Commands.Context(), i)
		return 0, err
	}
	if err := q.Commands.Cut(); err != nil {
		return 0, err
	}
	return q.Host.TimedWait(func(ctx context.Context) (err error) {
		*placed, err = p.s.Weights.Units().Acquire(ctx, i)
		return err
	})
}
