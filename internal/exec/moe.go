package exec

import (
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
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

// route records the choice of each row's experts.
func (r *run) route(o *arch.Op, bias uint64) error {
	if err := r.rec.TopKMoE(r.routeArgs(r.value(o.A), bias)); err != nil {
		return err
	}
	return r.keepRouted()
}

// keepRouted has the layer's choice copied to host memory where somebody wants to know all of them.
func (r *run) keepRouted() error {
	if r.e.Routed == nil {
		return nil
	}
	return r.keepChosen(r.e.Plan.Units[r.at].Layer)
}

// normedRoute records a norm, a router and the choice of experts, as one where the device can.
func (r *run) normedRoute(ops []arch.Op) (done bool, err error) {
	norm, product, choice := &ops[0], &ops[1], &ops[2]
	_, w, err := r.tensor(norm.Weight)
	if err != nil {
		return false, err
	}
	t, router, err := r.tensor(product.Weight)
	if err != nil {
		return false, err
	}
	bias := uint64(0)
	if choice.Weight != "" {
		if _, bias, err = r.tensor(choice.Weight); err != nil {
			return false, err
		}
	}
	c := r.routeArgs(r.value(choice.A), bias)
	a := shaders.TopKMoERoutedArgs{
		X: r.value(norm.A), W: w, Router: router, Dst: r.value(norm.Dst), Scores: c.X, Bias: c.Bias, IDs: c.IDs, Weights: c.Weights,
		Rows: c.Rows, Cols: r.width(norm.A), Experts: c.Experts, Used: c.Used, Gating: c.Gating,
		Groups: c.Groups, GroupsUsed: c.GroupsUsed, Scale: c.Scale, GroupBest: c.GroupBest, Eps: r.e.Hyper.RMSEpsilon, There: c.There,
	}
	if !r.rec.TakesRouted(t.Type, &a) {
		return false, nil
	}
	if err := r.rec.RouteNormed(t.Type, a); err != nil {
		return false, err
	}
	return true, r.keepRouted()
}

// routeArgs are the arguments of a choice by scores.
func (r *run) routeArgs(scores, bias uint64) shaders.TopKMoEArgs {
	x := &r.e.Hyper.Experts
	a := shaders.TopKMoEArgs{
		X: scores, Bias: bias, IDs: r.value(arch.Chosen), Weights: r.value(arch.Share),
		Rows: uint32(len(r.rows)), Experts: uint32(x.Count), Used: uint32(x.Used), Gating: uint32(x.Gating), Scale: x.Scale,
		Groups: uint32(x.Groups), GroupsUsed: uint32(x.GroupsUsed), GroupBest: uint32(x.GroupBest),
		There: r.lookedUp(),
	}
	if x.Normalise {
		a.Gating |= shaders.GateNormalised
	}
	return a
}

// experts records the experts of the unit at hand, and those of the units before it that waited for it: where all of them
// stay in VRAM they run together.
func (r *run) experts(o *arch.Op) error {
	units := r.e.Plan.Units
	if isCached(&units[r.at]) {
		return r.cached(o)
	}
	if r.again || r.at+1 < len(units) && neighbours(&units[r.at], &units[r.at+1]) {
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
	if done, err := r.summedExperts(o, first, last); done || err != nil {
		return err
	}
	return r.byExperts(o, first, last)
}

// byExperts records the operations of a layer's experts, first up to last, whose addresses the device's table has, in parts
// where they would run too long.
func (r *run) byExperts(o *arch.Op, first, last int) error {
	h, perExpert := r.e.Hyper, 0.0
	for i := range o.Ops {
		if e := &o.Ops[i]; e.Kind == arch.MulMatID {
			perExpert += 2 * float64(h.PairWidth(e.Dst)) * float64(h.PairWidth(e.A)) * float64(len(r.rows)) * float64(h.Experts.Used) / float64(h.Experts.Count)
		}
	}
	return r.byRows(uint32(last-first), perExpert*(1-r.absent), func(from, n uint32) error {
		return r.expertOps(o, len(o.Ops), uint32(first)+from, uint32(first)+from+n)
	})
}

// summedExperts records all experts of a layer together with the sum of what they make, the next operation, where the device can:
// the last product and the sum are one.
func (r *run) summedExperts(o *arch.Op, first, last int) (done bool, err error) {
	h, ops, down := r.e.Hyper, r.e.ops[r.at], len(o.Ops)-1
	at := slices.IndexFunc(ops, func(op arch.Op) bool { return op.Kind == arch.Experts })
	if first != 0 || last != h.Experts.Count || down < 0 || o.Ops[down].Kind != arch.MulMatID || !o.Ops[down].A.PerPair() || at+1 >= len(ops) {
		return false, nil
	}
	sum := &ops[at+1]
	if sum.Kind != arch.SumExperts || sum.A != o.Ops[down].Dst {
		return false, nil
	}
	p, err := r.expertProducts(o, down, 0, uint32(last))
	if err != nil {
		return false, err
	}
	a := shaders.MulMatIDSumArgs{
		Table: p.Table, X: p.X, IDs: p.IDs, Weights: r.value(arch.Share), Dst: r.value(sum.Dst), Residual: r.value(sum.B),
		M: p.M, K: p.K, N: uint32(len(r.rows)), Used: uint32(h.Experts.Used), DstStride: r.width(sum.Dst), ResidualStride: r.width(sum.B),
	}
	if !r.rec.TakesExpertSum(p.Type, &a) {
		return false, nil
	}
	if err := r.expertOps(o, down, 0, uint32(last)); err != nil {
		return false, err
	}
	r.summed = true
	return true, r.rec.ExpertSum(p.Type, a, p.Experts)
}

// expertOps records the first n operations of experts first to last, last not one of them.
func (r *run) expertOps(o *arch.Op, n int, first, last uint32) error {
	for i := 0; i < n; i++ {
		e := &o.Ops[i]
		var err error
		switch e.Kind {
		case arch.MulMatID:
			var p kernels.ExpertProducts
			if p, err = r.expertProducts(o, i, first, last); err != nil {
				return err
			}
			var done bool
			if done, err = r.gatedExperts(o, i, p); done {
				i += 2
			} else if err == nil {
				err = r.rec.MulMatID(p.Type, p.MulMatIDArgs, p.Experts)
			}
		case arch.SwiGLU:
			cols := uint32(r.e.Hyper.PairWidth(e.Dst))
			pairs := uint32(len(r.rows)) * r.width(e.Dst) / cols
			err = r.rec.SwiGLUMultiplied(shaders.GLUArgs{Gate: r.value(e.A), Up: r.value(e.B), Dst: r.value(e.Dst), Count: pairs * cols}, pairs, cols)
		default:
			err = r.eachPair(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gatedExperts records the product at i, the next one and what comes of both as one, where they are gates and what those let
// through, and the device can.
func (r *run) gatedExperts(o *arch.Op, i int, p kernels.ExpertProducts) (done bool, err error) {
	if i+2 >= len(o.Ops) {
		return false, nil
	}
	gate, up, glu := &o.Ops[i], &o.Ops[i+1], &o.Ops[i+2]
	if up.Kind != arch.MulMatID || up.A != gate.A || glu.Kind != arch.SwiGLU || glu.A != gate.Dst || glu.B != up.Dst {
		return false, nil
	}
	other, err := r.expertProducts(o, i+1, p.First, p.Last)
	if err != nil || other.Type != p.Type {
		return false, err
	}
	p.Up, p.Dst = other.Table, r.value(glu.Dst)
	if !r.rec.TakesExperts(&p) {
		return false, nil
	}
	return true, r.rec.ExpertProducts(&p)
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

// entry is where the table has an expert's matrix, the op'th of the layer's.
func (e *Exec) entry(layer, op, id int) int {
	return (layer*expertTensors+op)*e.Hyper.Experts.Count + id
}

// tableAt is where the scratch has a layer's part of it.
func (e *Exec) tableAt(layer int) int64 {
	return e.Plan.Scratch.Table.Off + int64(8*e.entry(layer, 0, 0))
}

// tell brings the addresses of the experts of the units from `from` up to the one at hand into the device's table, unless it
// has them.
func (r *run) tell(o *arch.Op, from int) error {
	units, layer := r.e.Plan.Units[from:r.at+1], r.e.Plan.Units[r.at].Layer
	changed := false
	for i := range units {
		for j := range units[i].Tensors {
			t := &units[i].Tensors[j]
			for op := range o.Ops {
				if o.Ops[op].Weight != t.Name {
					continue
				}
				at, addr := r.e.entry(layer, r.which(o, op), t.Expert), r.e.bases[from+i]+uint64(t.UnitOff)
				changed = changed || r.e.table[at] != addr
				r.e.table[at] = addr
			}
		}
	}
	if !changed {
		return nil
	}
	off := r.e.Plan.Scratch.Table.Off
	return r.tellLayer(r.e.table, layer, off, off)
}

// tellLayer copies a layer's part of a table to the device's, which is at off of the scratch, by way of the inputs at via.
func (r *run) tellLayer(table []uint64, layer int, off, via int64) error {
	n := len(table) / r.e.Hyper.BlockCount
	at := int64(8 * n * layer)
	m := r.e.in.Mapped()[via+at:]
	for i, addr := range table[n*layer:][:n] {
		le.PutUint64(m[8*i:], addr)
	}
	return r.rec.Copy(r.e.scratch, off+at, r.e.in, via+at, int64(8*n))
}

// expertProducts is the product that is operation i of o, with experts first to last.
func (r *run) expertProducts(o *arch.Op, i int, first, last uint32) (p kernels.ExpertProducts, err error) {
	h, s, u, e := r.e.Hyper, &r.e.Plan.Scratch, &r.e.Plan.Units[r.at], &o.Ops[i]
	t, ok := u.Tensor(e.Weight)
	if !ok {
		return p, fmt.Errorf("tensor %q is not in %s", e.Weight, u.Name)
	}
	x, m, k := &h.Experts, uint32(h.PairWidth(e.Dst)), uint32(h.PairWidth(e.A))
	table := r.addr(s.Table) + uint64(8*r.e.entry(u.Layer, r.which(o, i), 0))
	if r.leaping { // all that are there, whoever brought them
		table = r.addr(s.There) + uint64(8*r.e.thereEntry(u.Layer, r.which(o, i), 0))
	}
	p = kernels.ExpertProducts{Type: t.Type, Experts: uint32(x.Count), MulMatIDArgs: shaders.MulMatIDArgs{
		Table: table, X: r.value(e.A), Dst: r.value(e.Dst), IDs: r.value(arch.Chosen),
		M: m, K: k, Count: uint32(len(r.rows) * x.Used), Used: uint32(x.Used), XStride: k, DstStride: m, First: first, Last: last,
	}}
	if e.A.PerPair() {
		p.Used = 1
	}
	if r.grouped() {
		p.Pairs, p.Tiles = r.value(arch.Pairs), r.addr(s.Tiles)
	}
	return p, nil
}

// sumExperts records the sum of what each row's experts made, unless that is done.
func (r *run) sumExperts(o *arch.Op) error {
	if r.summed {
		r.summed = false
		return nil
	}
	d := r.width(o.Dst)
	return r.rec.SumExperts(shaders.SumExpertsArgs{
		Y: r.value(o.A), Weights: r.value(arch.Share), Residual: r.value(o.B), Dst: r.value(o.Dst),
		Rows: uint32(len(r.rows)), Used: uint32(r.e.Hyper.Experts.Used), Cols: d, DstStride: d,
	})
}
