package exec

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

// fused records an operation that stands for others, as few dispatches where the device can in a step of few rows; else
// one after another.
func (r *run) fused(o *arch.Op, u *plan.Unit) (err error) {
	done := false
	switch o.Kind {
	case arch.Siblings:
		done, err = r.siblings(o.Ops)
	case arch.Gated:
		done, err = r.gated(o)
	case arch.Added:
		done, err = r.added(o)
	case arch.TurnedProducts:
		done, err = r.productsTurned(o, u.Layer)
	case arch.TurnedAppend:
		done, err = r.turned(u.Layer)
	case arch.NormedRoute:
		done, err = r.normedRoute(o.Ops)
	case arch.NormedAppend:
		done, err = r.headsNormed(o.Ops, u.Layer)
	}
	if done || err != nil {
		return err
	}
	for _, o := range o.Ops {
		if err := r.op(o, u); err != nil {
			return err
		}
	}
	return nil
}

// tensor finds a weight of the unit that is being recorded, or of one before it that stays in VRAM, and its address.
func (r *run) tensor(name string) (*pack.Tensor, uint64, error) {
	units := r.e.Plan.Units
	for i := r.at; i >= 0 && units[i].Layer == units[r.at].Layer; i-- {
		if t, ok := units[i].Tensor(name); ok {
			return t, r.e.bases[i] + uint64(t.UnitOff), nil
		}
	}
	return nil, 0, fmt.Errorf("tensor %q is not in %s, nor in a part of the layer before it", name, units[r.at].Name)
}

// linear is the product that ops begin with, and its bias, as one of the recorder's; n is how many they are.
func (r *run) linear(ops []arch.Op) (t *pack.Tensor, m kernels.Matrix, n int, err error) {
	t, m.W, err = r.tensor(ops[0].Weight)
	if err != nil {
		return nil, m, 0, err
	}
	m.Dst, m.M = r.value(ops[0].Dst), r.width(ops[0].Dst)
	if len(ops) > 1 && ops[1].Kind == arch.Bias {
		_, m.Bias, err = r.tensor(ops[1].Weight)
		return t, m, 2, err
	}
	return t, m, 1, nil
}

// products of a, none yet.
func (r *run) products(a arch.Value) kernels.Products {
	return kernels.Products{X: r.value(a), N: uint32(len(r.rows)), K: r.width(a), XStride: r.width(a)}
}

// inParts records products that the recorder takes: of a long step, in parts as byRows makes them.
func (r *run) inParts(all *kernels.Products) error {
	record := func(from, n uint32) error {
		p := *all
		p.N, p.X = n, all.X+4*uint64(from)*uint64(all.XStride)
		if p.Residual != 0 {
			p.Residual += 4 * uint64(from) * uint64(all.ResidualStride)
		}
		for i := range p.Of {
			stride := p.Of[i].M
			if i == 0 {
				stride = p.DstStride
			}
			p.Of[i].Dst += 4 * uint64(from) * uint64(stride)
		}
		return r.rec.Products(&p)
	}
	if all.N <= shaders.FewRows {
		return record(0, all.N)
	}
	perRow := 0.0
	for i := range all.Of {
		perRow += 2 * float64(all.Of[i].M) * float64(all.K)
	}
	return r.byRows(all.N, perRow, record)
}

// byType is products of one input, up to three, those of one type together; where they turn, each has its own place among them.
func (r *run) byType(ops []arch.Op, turn bool) (types [3]kernels.Products, kinds int, err error) {
	var counts [3]int
	for nth := 0; len(ops) > 0; nth++ {
		t, m, n, err := r.linear(ops)
		if err != nil {
			return types, 0, err
		}
		i := 0
		for i < kinds && types[i].Type != t.Type {
			i++
		}
		if i == kinds {
			types[i] = r.products(ops[0].A)
			types[i].Type, types[i].DstStride = t.Type, m.M
			kinds++
		}
		at := counts[i]
		if turn {
			at = nth
		}
		types[i].Of[at] = m
		counts[i]++
		ops = ops[n:]
	}
	return types, kinds, nil
}

// siblings records products of one input, those of one type together.
func (r *run) siblings(ops []arch.Op) (done bool, err error) {
	types, kinds, err := r.byType(ops, false)
	if err != nil {
		return false, err
	}
	for i := range types[:kinds] {
		if !r.rec.Takes(&types[i]) {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		if err := r.inParts(&types[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// gated records the two products of a gated unit and what comes of them.
func (r *run) gated(o *arch.Op) (done bool, err error) {
	gate, g, n, err := r.linear(o.Ops)
	if err != nil {
		return false, err
	}
	up, u, _, err := r.linear(o.Ops[n:])
	if err != nil {
		return false, err
	}
	p := r.products(o.A)
	p.Type, p.GLU, p.DstStride = gate.Type, true, r.width(o.Dst)
	g.Dst = r.value(o.Dst)
	p.Of[0], p.Of[1] = g, u
	if up.Type != gate.Type {
		return false, nil
	}
	if r.rec.Takes(&p) {
		return true, r.inParts(&p)
	}
	a := shaders.MulMatArgs{W: g.W, X: p.X, Dst: g.Dst, M: g.M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
	if g.Bias|u.Bias != 0 || !r.rec.TakesGates(gate.Type, &a) {
		return false, nil
	}
	return true, r.byRows(a.N, 4*float64(a.M)*float64(a.K), func(from, n uint32) error {
		return r.rec.Gates(gate.Type, rowsOf(a, from, n), u.W)
	})
}

// added records a product that is added to something.
func (r *run) added(o *arch.Op) (done bool, err error) {
	t, m, _, err := r.linear(o.Ops)
	if err != nil {
		return false, err
	}
	p := r.products(o.A)
	p.Type, p.DstStride = t.Type, r.width(o.Dst)
	m.Dst = r.value(o.Dst)
	if m.Bias == 0 && r.rec.Halves(t.Type, m.M, p.N, p.K) {
		a := shaders.MulMatArgs{W: m.W, X: p.X, Dst: m.Dst, M: m.M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
		return true, r.mulMatAdd(t.Type, a, r.value(o.B), r.width(o.B))
	}
	p.Of[0] = m
	p.Residual, p.ResidualStride = r.value(o.B), r.width(o.B)
	if !r.rec.Takes(&p) {
		return false, nil
	}
	return true, r.inParts(&p)
}

// productsTurned records the products of Q, K and V, which turn and write the cache as they are made.
func (r *run) productsTurned(o *arch.Op, layer int) (done bool, err error) {
	types, kinds, err := r.byType(o.Ops[0].Ops, true)
	if err != nil {
		return false, err
	}
	a := r.ropeKV(layer)
	for i := range types[:kinds] {
		if !r.rec.TakesTurned(&types[i], r.e.KVType, &a) {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		if err := r.rec.ProductsTurned(&types[i], r.e.KVType, &a); err != nil {
			return false, err
		}
	}
	return true, nil
}

// turned records the turning of Q and K and the writing of the cache.
func (r *run) turned(layer int) (done bool, err error) {
	if r.e.Hyper.Rope.Dim%4 != 0 || !r.rec.TakesRopeKV(r.e.KVType) {
		return false, nil
	}
	return true, r.rec.RopeKV(r.e.KVType, r.ropeKV(layer))
}

func (r *run) ropeKV(layer int) shaders.RopeKVArgs {
	h, s := r.e.Hyper, &r.e.Plan.Scratch
	a := shaders.RopeKVArgs{
		Q: r.value(arch.Q), K: r.value(arch.K), V: r.value(arch.V), CosSin: r.addr(s.CosSin), Pages: r.addr(s.Pages), Pos: r.addr(s.Pos), Seq: r.addr(s.Seq),
		Rows: uint32(len(r.rows)), Heads: uint32(h.HeadCount), HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
		RopeDim: uint32(h.Rope.Dim), MaxPages: uint32(r.maxPages), PagePositions: plan.PagePositions, LayerOff: r.layerOff(layer),
		QStride: r.width(arch.Q), KStride: r.width(arch.K), VStride: r.width(arch.V),
	}
	if h.Rope.Neox {
		a.Neox = 1
	}
	return a
}

// headsNormed records the same behind norms of the heads, which ops begin with.
func (r *run) headsNormed(ops []arch.Op, layer int) (done bool, err error) {
	h := r.e.Hyper
	if h.Rope.Dim%4 != 0 || !r.rec.TakesRopeNormKV(r.e.KVType, uint32(h.KeyLength)) {
		return false, nil
	}
	_, q, err := r.tensor(ops[0].Weight)
	if err != nil {
		return false, err
	}
	_, k, err := r.tensor(ops[1].Weight)
	if err != nil {
		return false, err
	}
	return true, r.rec.RopeNormKV(r.e.KVType, r.ropeKV(layer).Normed(q, k, h.RMSEpsilon))
}
