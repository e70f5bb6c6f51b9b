package experts

import (
	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/submit"
)

// placed runs experts where units of the plan hold them: in VRAM for good, or in the ring for as long as they run.
type placed struct {
	*choices
	o     Options
	bases []uint64 // where each unit of the plan lies in the step under way
	table []uint64 // (L, matrices, E) the addresses that the device has been told
}

func newPlaced(o Options, c *choices, bases []uint64) *placed {
	h := o.Frame.Hyper
	p := &placed{choices: c, o: o, bases: bases, table: make([]uint64, h.BlockCount*matrices*h.Experts.Count)}
	c.o = &p.o
	return p
}

func (p *placed) Begin(bool) error         { return p.o.Queue.Commands.Open() }
func (p *placed) End() error               { return p.o.Queue.Commands.Submit() }
func (p *placed) Over() error              { return p.tell() }
func (p *placed) Abort()                   { clear(p.table) } // what the device was to be told, it may not have been
func (p *placed) Replan(to *plan.Plan)     { p.o.Plan = to }
func (p *placed) RunsConditionally() bool  { return false }
func (p *placed) RunConditionally(float64) {}
func (p *placed) Ran(*submit.Ran)          {}
func (p *placed) Close()                   { p.close(p.o.Host) }

// Run records the experts of a unit, and those of the units before it that waited for it: where all of them stay in VRAM they run together.
func (p *placed) Run(l Layer) error {
	units := p.o.Plan.Units
	if l.Unit+1 < len(units) && together(&units[l.Unit], &units[l.Unit+1]) {
		return nil
	}
	from := l.Unit
	for from > 0 && together(&units[from-1], &units[from]) {
		from--
	}
	f := p.o.Frame
	f.Experts = record.ExpertTable{Address: f.At(f.Scratch.Table) + uint64(8*p.at(l.Layer)), First: units[from].Expert, Last: units[l.Unit].Expert + units[l.Unit].Experts}
	if err := p.tellDevice(l, from); err != nil {
		return err
	}
	return f.EachSpan(l.Op, &units[l.Unit])
}

// together reports whether a unit's experts run with those of the next one.
func together(u, next *plan.Unit) bool {
	return u.Kind == pack.Experts && next.Kind == pack.Experts && u.Layer == next.Layer && u.Resident() && next.Resident()
}

// at is where the table has a layer's part.
func (p *placed) at(layer int) int { return layer * matrices * p.o.Frame.Hyper.Experts.Count }

// tellDevice brings the addresses of the experts of units from `from` to the layer's own into the device's table, unless it has them.
func (p *placed) tellDevice(l Layer, from int) error {
	changed, count := false, p.o.Frame.Hyper.Experts.Count
	for i := from; i <= l.Unit; i++ {
		u := &p.o.Plan.Units[i]
		for j := range u.Tensors {
			t := &u.Tensors[j]
			matrix := record.MatrixOf(l.Op, t.Name)
			if matrix < 0 {
				continue
			}
			at, address := p.at(l.Layer)+matrix*count+t.Expert, p.bases[i]+uint64(t.UnitOff)
			changed = changed || p.table[at] != address
			p.table[at] = address
		}
	}
	if !changed {
		return nil
	}
	return copyTable(&p.o, p.table, p.at(l.Layer), matrices*count, p.o.Frame.Scratch.Table.Off, p.o.Frame.Scratch.Table.Off)
}

// copyTable copies n addresses of a table, from one on, to the device's, which is at off of the scratch, by way of the inputs at via.
func copyTable(o *Options, table []uint64, from, n int, off, via int64) error {
	at := int64(8 * from)
	m := o.Inputs.Mapped()[via+at:]
	for i, address := range table[from:][:n] {
		le.PutUint64(m[8*i:], address)
	}
	return o.Frame.Rec.Copy(o.Scratch, off+at, o.Inputs, via+at, int64(8*n))
}
