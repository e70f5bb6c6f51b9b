package exec

import (
	"fmt"

	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/plan"
	"leat/shaders"
)

// expertTensors are an expert's matrices in the table of addresses, in the order of the operations.
const expertTensors = 3

// dealExperts gives the operation of experts to each unit that holds some, and returns the last one's index.
func dealExperts(ops [][]arch.Op, units []plan.Unit, o arch.Op) (last int) {
	for i := range units {
		if units[i].Kind == pack.Experts {
			ops[i] = append(ops[i], o)
			last = i
		}
	}
	return last
}

// grouped reports whether a step's pairs are sorted by expert: that pays where an expert has several.
func (r *run) grouped() bool { return len(r.rows) > shaders.FewRows }

// route records the choice of each row's experts. The ids stay on the device: who wants to know them on the host can have
// them copied from Chosen.
func (r *run) route(o *arch.Op, bias uint64) error {
	x, n, s := &r.e.Hyper.Experts, uint32(len(r.rows)), &r.e.Plan.Scratch
	a := shaders.TopKMoEArgs{
		X: r.value(o.A), Bias: bias, IDs: r.value(arch.Chosen), Weights: r.value(arch.Share),
		Rows: n, Experts: uint32(x.Count), Used: uint32(x.Used), Gating: uint32(x.Gating), Scale: x.Scale,
		Groups: uint32(x.Groups), GroupsUsed: uint32(x.GroupsUsed), GroupBest: uint32(x.GroupBest),
	}
	if x.Normalise {
		a.Normalise = 1
	}
	if err := r.rec.TopKMoE(a); err != nil || !r.grouped() {
		return err
	}
	return r.rec.GroupExperts(shaders.GroupExpertsArgs{
		IDs: a.IDs, Pairs: r.value(arch.Pairs), Tiles: r.addr(s.Tiles), Count: n * a.Used, Experts: a.Experts,
	})
}

// experts records the experts of the unit at hand, and those of the units before it that waited for it: where all of them
// stay in VRAM they run together.
func (r *run) experts(o *arch.Op) error {
	units := r.e.Plan.Units
	if r.at+1 < len(units) && neighbours(&units[r.at], &units[r.at+1]) {
		return nil
	}
	from := r.at
	for from > 0 && neighbours(&units[from-1], &units[from]) {
		from--
	}
	if err := r.tell(o, from); err != nil {
		return err
	}
	first, last := units[from].Expert, units[r.at].Expert+units[r.at].Experts
	for i := range o.Ops {
		e := &o.Ops[i]
		var err error
		switch e.Kind {
		case arch.MulMatID:
			err = r.mulMatID(e, r.which(o, i), first, last)
		case arch.SwiGLU:
			count := uint32(len(r.rows)) * r.width(e.Dst)
			err = r.rec.SwiGLU(shaders.GLUArgs{Gate: r.value(e.A), Up: r.value(e.B), Dst: r.value(e.Dst), Count: count})
		default:
			err = r.eachPair(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// neighbours reports whether a unit's experts run with those of the next one.
func neighbours(u, next *plan.Unit) bool {
	return u.Kind == pack.Experts && next.Kind == pack.Experts && u.Layer == next.Layer && u.Resident() && next.Resident()
}

// which numbers the matrices among the operations of experts.
func (r *run) which(o *arch.Op, op int) (n int) {
	for _, e := range o.Ops[:op] {
		if e.Kind == arch.MulMatID {
			n++
		}
	}
	return n
}

// tableOf is where a layer's part of the table begins, in entries.
func (r *run) tableOf(layer int) int { return layer * expertTensors * r.e.Hyper.Experts.Count }

// tell brings the addresses of the experts of the units from `from` up to the one at hand into the device's table, unless it
// has them.
func (r *run) tell(o *arch.Op, from int) error {
	units, table := r.e.Plan.Units[from:r.at+1], r.tableOf(r.e.Plan.Units[r.at].Layer)
	changed := false
	for i := range units {
		for j := range units[i].Tensors {
			t := &units[i].Tensors[j]
			for op := range o.Ops {
				if o.Ops[op].Weight != t.Name {
					continue
				}
				at, addr := table+r.which(o, op)*r.e.Hyper.Experts.Count+t.Expert, r.e.bases[from+i]+uint64(t.UnitOff)
				changed = changed || r.e.table[at] != addr
				r.e.table[at] = addr
			}
		}
	}
	if !changed {
		return nil
	}
	g := r.e.Plan.Scratch.Table
	g.Off += int64(8 * table)
	g.Bytes = int64(8 * expertTensors * r.e.Hyper.Experts.Count)
	m := r.e.in.Mapped()[g.Off:]
	for i, addr := range r.e.table[table:][:expertTensors*r.e.Hyper.Experts.Count] {
		le.PutUint64(m[8*i:], addr)
	}
	return r.rec.Copy(r.e.scratch, g.Off, r.e.in, g.Off, g.Bytes)
}

// mulMatID records a product with experts first to last, in parts where it would run too long.
func (r *run) mulMatID(o *arch.Op, which, first, last int) error {
	h, s, u := r.e.Hyper, &r.e.Plan.Scratch, &r.e.Plan.Units[r.at]
	t, ok := u.Tensor(o.Weight)
	if !ok {
		return fmt.Errorf("tensor %q is not in %s", o.Weight, u.Name)
	}
	x, n := &h.Experts, uint32(len(r.rows))
	m, k := uint32(h.PairWidth(o.Dst)), uint32(h.PairWidth(o.A))
	a := shaders.MulMatIDArgs{
		Table: r.addr(s.Table) + uint64(8*(r.tableOf(u.Layer)+which*x.Count)), X: r.value(o.A), Dst: r.value(o.Dst), IDs: r.value(arch.Chosen),
		M: m, K: k, Count: n * uint32(x.Used), Used: uint32(x.Used), XStride: k, DstStride: m,
	}
	if o.A.PerPair() {
		a.Used = 1
	}
	if r.grouped() {
		a.Pairs, a.Tiles = r.value(arch.Pairs), r.addr(s.Tiles)
	}
	perExpert := 2 * float64(m) * float64(k) * float64(a.Count) / float64(x.Count)
	return r.byRows(uint32(last-first), perExpert, func(from, n uint32) error {
		a.First, a.Last = uint32(first)+from, uint32(first)+from+n
		return r.rec.MulMatID(t.Type, a, uint32(x.Count))
	})
}

// sumExperts records the sum of what each row's experts made.
func (r *run) sumExperts(o *arch.Op) error {
	d := r.width(o.Dst)
	return r.rec.SumExperts(shaders.SumExpertsArgs{
		Y: r.value(o.A), Weights: r.value(arch.Share), Residual: r.value(o.B), Dst: r.value(o.Dst),
		Rows: uint32(len(r.rows)), Used: uint32(r.e.Hyper.Experts.Used), Cols: d, DstStride: d,
	})
}
