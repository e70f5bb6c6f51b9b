package experts

import (
	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/submit"
)

// placed is the runner for plans without slots: each expert has its place in a unit, which stays in VRAM or is in the ring while it runs.
type placed struct {
	*choices
	o     Options  // the options; Replan changes Plan
	bases []uint64 // by unit of the plan: the unit's device address in the current step
	table []uint64 // (L, matrices, E) addresses, a copy of the device's table
}

// newPlaced makes a runner that uses c, and sets c.o to the runner's options. bases has the device address of each unit of the plan. The runner reads it
// in each step.
func newPlaced(o Options, c *choices, bases []uint64) *placed {
	h := o.Frame.Hyper
	p := &placed{choices: c, o: o, bases: bases, table: make([]uint64, h.BlockCount*matrices*h.Experts.Count)}
	c.o = &p.o
	return p
}

// Begin opens the step's first command buffer. No command buffers are kept.
func (p *placed) Begin(bool) error { return p.o.Queue.Commands.Open() }

// End submits the open command buffer, see [submit.Commands.Submit].
func (p *placed) End() error { return p.o.Queue.Commands.Submit() }

// Over calls Options.Routed with the step's choices.
func (p *placed) Over() error { return p.callRouted() }

// Abort forgets the table, so that each layer's addresses are copied anew: the device may not have run the last copies.
func (p *placed) Abort() { clear(p.table) }

// Replan uses another plan from the next step on.
func (p *placed) Replan(to *plan.Plan) { p.o.Plan = to }

// CanRunConditionally returns false: the host knows where all experts are when it records a step.
func (p *placed) CanRunConditionally() bool { return false }

// SetConditionalBelow does nothing: no layer runs conditionally.
func (p *placed) SetConditionalBelow(float64) {}

// Ran does nothing: the counters are for experts in slots.
func (p *placed) Ran(*submit.Ran) {}

// Close frees host memory.
func (p *placed) Close() { p.close(p.o.Host) }

// Run records the experts of a unit, and a copy of their addresses to the device if they have changed. Consecutive units of a layer that stay
// in VRAM run together: Run does nothing for all but the last of them.
func (p *placed) Run(l Layer) error {
	units := p.o.Plan.Units
	if l.Unit+1 < len(units) && runTogether(&units[l.Unit], &units[l.Unit+1]) {
		return nil
	}
	from := l.Unit
	for from > 0 && runTogether(&units[from-1], &units[from]) {
		from--
	}
	f := p.o.Frame
	f.Experts = record.ExpertTable{Address: f.At(f.Scratch.ExpertTable) + uint64(8*p.tableIndex(l.Layer)), First: units[from].Expert, Last: units[l.Unit].Expert + units[l.Unit].Experts}
	if err := p.updateTable(l, from); err != nil {
		return err
	}
	return f.EachSpan(l.Op, &units[l.Unit])
}

// runTogether reports whether the experts of two consecutive units run together: both units stay in VRAM and are of one layer.
func runTogether(u, next *plan.Unit) bool {
	return u.Kind == pack.Experts && next.Kind == pack.Experts && u.Layer == next.Layer && u.Resident() && next.Resident()
}

// tableIndex is the index in p.table of a layer's first address.
func (p *placed) tableIndex(layer int) int { return layer * matrices * p.o.Frame.Hyper.Experts.Count }

// updateTable sets the addresses of the experts in the units with indices from to l.Unit. If an address has changed, it records a copy of the layer's
// addresses to the device's table.
func (p *placed) updateTable(l Layer, from int) error {
	changed, count := false, p.o.Frame.Hyper.Experts.Count
	for i := from; i <= l.Unit; i++ {
		u := &p.o.Plan.Units[i]
		for j := range u.Tensors {
			t, matrix := &u.Tensors[j], 0
			for k := range l.Op.Ops {
				product := &l.Op.Ops[k]
				if product.Kind != arch.MulMatID {
					continue
				}
				if product.Weight == t.Name {
					at, address := p.tableIndex(l.Layer)+matrix*count+t.Expert, p.bases[i]+uint64(t.UnitOff)+record.RowOff(t, product.Row)
					changed = changed || p.table[at] != address
					p.table[at] = address
				}
				matrix++
			}
		}
	}
	if !changed {
		return nil
	}
	return copyTable(&p.o, p.table, p.tableIndex(l.Layer), matrices*count, p.o.Frame.Scratch.ExpertTable.Off, p.o.Frame.Scratch.ExpertTable.Off)
}

// copyTable copies n addresses of the table, from index from on, to the device's copy of the table: it writes them to the inputs, and records a copy from
// the inputs to the scratch. off is the offset of the whole table in the scratch, via the offset in the inputs.
func copyTable(o *Options, table []uint64, from, n int, off, via int64) error {
	at := int64(8 * from)
	m := o.Inputs.Mapped()[via+at:]
	for i, address := range table[from:][:n] {
		le.PutUint64(m[8*i:], address)
	}
	return o.Frame.Rec.Copy(o.Scratch, off+at, o.Inputs, via+at, int64(8*n))
}
