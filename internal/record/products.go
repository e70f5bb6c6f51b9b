package record

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

func mulMat(f *Frame, o *arch.Op) error {
	t, w, err := f.weight(o)
	if err != nil {
		return err
	}
	return f.mulMat(t.Type, shaders.MulMatArgs{W: w, X: f.value(o.A), Dst: f.value(o.Dst), M: f.width(o.Dst), K: f.width(o.A), N: f.n(), XStride: f.width(o.A), DstStride: f.width(o.Dst)})
}

// mulMat splits a product by rows of X where one dispatch would run too long.
func (f *Frame) mulMat(t gguf.Type, a shaders.MulMatArgs) error { return f.mulMatAdd(t, a, 0, 0) }

// mulMatAdd is mulMat with what is at residual added, stride floats from row to row, where the recorder says that it can; 0: nothing is.
func (f *Frame) mulMatAdd(t gguf.Type, a shaders.MulMatArgs, residual uint64, stride uint32) error {
	return f.Commands.ByRows(a.N, 2*float64(a.M)*float64(a.K), func(from, n uint32) error {
		b := rowsOf(a, from, n)
		if residual != 0 {
			return kernels.MulMatAdd(f.Rec, t, b, residual+uint64(from)*uint64(stride)*4, stride)
		}
		return kernels.MulMat(f.Rec, t, b)
	})
}

// rowsOf is the product of n rows of X, from one on.
func rowsOf(a shaders.MulMatArgs, from, n uint32) shaders.MulMatArgs {
	a.X += uint64(from) * uint64(a.XStride) * 4
	a.Dst += uint64(from) * uint64(a.DstStride) * 4
	a.N = n
	return a
}

// headMulMat records a product for each head with a matrix of its own.
func headMulMat(f *Frame, o *arch.Op) error {
	t, w, err := f.weight(o)
	if err != nil {
		return err
	}
	x, dst, heads := f.width(o.A), f.width(o.Dst), uint32(o.Heads)
	a := shaders.MulMatHeadsArgs{
		W: w, M: uint32(o.Rows), K: uint32(o.Cols), Heads: heads,
		XStride: x, DstStride: dst, XHead: x / heads, DstHead: dst / heads,
	}
	return f.Commands.ByRows(f.n(), 2*float64(heads)*float64(a.M)*float64(a.K), func(from, n uint32) error {
		a.N, a.X, a.Dst = n, f.value(o.A)+4*uint64(from)*uint64(x), f.value(o.Dst)+4*uint64(from)*uint64(dst)
		return kernels.MulMatHeads(f.Rec, t.Type, a)
	})
}

// linear is the product that ops begin with, and its bias, as one of the recorder's; n is how many operations they are.
func linear(f *Frame, ops []arch.Op) (t *pack.Tensor, m kernels.Matrix, n int, err error) {
	t, m.W, err = f.Tensor(ops[0].Weight)
	if err != nil {
		return nil, m, 0, err
	}
	m.Dst, m.M = f.value(ops[0].Dst), f.width(ops[0].Dst)
	if len(ops) > 1 && ops[1].Kind == arch.Bias {
		_, m.Bias, err = f.Tensor(ops[1].Weight)
		return t, m, 2, err
	}
	return t, m, 1, nil
}

// productsOf is products of a, without matrices yet.
func productsOf(f *Frame, a arch.Value) kernels.Products {
	return kernels.Products{X: f.value(a), N: f.n(), K: f.width(a), XStride: f.width(a)}
}

// products records products that the recorder takes: for many rows in runs as Split makes them.
func (f *Frame) products(all *kernels.Products) error {
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
		return kernels.Multiply(f.Rec, &p)
	}
	if all.N <= shaders.FewRows {
		return record(0, all.N)
	}
	perRow := 0.0
	for i := range all.Of {
		perRow += 2 * float64(all.Of[i].M) * float64(all.K)
	}
	return f.Commands.ByRows(all.N, perRow, record)
}

// byType puts products of one input, up to three, together by the type of their weights. With placed each stands at its own place among
// the matrices of its type, else behind the one before.
func byType(f *Frame, ops []arch.Op, placed bool) (types [3]kernels.Products, kinds int, err error) {
	var counts [3]int
	for nth := 0; len(ops) > 0; nth++ {
		t, m, n, err := linear(f, ops)
		if err != nil {
			return types, 0, err
		}
		i := 0
		for i < kinds && types[i].Type != t.Type {
			i++
		}
		if i == kinds {
			types[i] = productsOf(f, ops[0].A)
			types[i].Type, types[i].DstStride = t.Type, m.M
			kinds++
		}
		at := counts[i]
		if placed {
			at = nth
		}
		types[i].Of[at] = m
		counts[i]++
		ops = ops[n:]
	}
	return types, kinds, nil
}

// siblings records products of one input, those of one type together.
func siblings(f *Frame, o *arch.Op) (done bool, err error) {
	types, kinds, err := byType(f, o.Ops, false)
	if err != nil {
		return false, err
	}
	for i := range types[:kinds] {
		if !kernels.Takes(f.Rec, &types[i]) {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		if err := f.products(&types[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// gated records the two products of a gated unit and what comes of them.
func gated(f *Frame, o *arch.Op) (done bool, err error) {
	gate, g, n, err := linear(f, o.Ops)
	if err != nil {
		return false, err
	}
	up, u, _, err := linear(f, o.Ops[n:])
	if err != nil || up.Type != gate.Type {
		return false, err
	}
	p := productsOf(f, o.A)
	p.Type, p.GLU, p.DstStride = gate.Type, true, f.width(o.Dst)
	g.Dst = f.value(o.Dst)
	p.Of[0], p.Of[1] = g, u
	if kernels.Takes(f.Rec, &p) {
		return true, f.products(&p)
	}
	a := shaders.MulMatArgs{W: g.W, X: p.X, Dst: g.Dst, M: g.M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
	if g.Bias|u.Bias != 0 || !kernels.TakesGates(f.Rec, gate.Type, &a) {
		return false, nil
	}
	return true, f.Commands.ByRows(a.N, 4*float64(a.M)*float64(a.K), func(from, n uint32) error {
		return kernels.Gates(f.Rec, gate.Type, rowsOf(a, from, n), u.W)
	})
}

// added records a product that is added to something.
func added(f *Frame, o *arch.Op) (done bool, err error) {
	t, m, _, err := linear(f, o.Ops)
	if err != nil {
		return false, err
	}
	p := productsOf(f, o.A)
	p.Type, p.DstStride = t.Type, f.width(o.Dst)
	m.Dst = f.value(o.Dst)
	if m.Bias == 0 && kernels.Halves(f.Rec, t.Type, m.M, p.N, p.K) {
		a := shaders.MulMatArgs{W: m.W, X: p.X, Dst: m.Dst, M: m.M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
		return true, f.mulMatAdd(t.Type, a, f.value(o.B), f.width(o.B))
	}
	p.Of[0] = m
	p.Residual, p.ResidualStride = f.value(o.B), f.width(o.B)
	if !kernels.Takes(f.Rec, &p) {
		return false, nil
	}
	return true, f.products(&p)
}

// turnedProducts records the products of Q, K and V, which turn and write the cache as they are made.
func turnedProducts(f *Frame, o *arch.Op) (done bool, err error) {
	types, kinds, err := byType(f, o.Ops[0].Ops, true)
	if err != nil {
		return false, err
	}
	a := ropeKV(f)
	for i := range types[:kinds] {
		if !kernels.TakesTurned(f.Rec, &types[i], f.KVType, &a) {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		if err := kernels.ProductsTurned(f.Rec, &types[i], f.KVType, &a); err != nil {
			return false, err
		}
	}
	return true, nil
}

// turnedAppend records the turning of Q and K and the writing of the cache.
func turnedAppend(f *Frame, _ *arch.Op) (done bool, err error) {
	if f.Hyper.Rope.Dim%4 != 0 || !kernels.TakesRopeKV(f.Rec, f.KVType) {
		return false, nil
	}
	return true, kernels.RopeKV(f.Rec, f.KVType, ropeKV(f))
}

// normedAppend records the same behind norms of the heads, which its operations begin with.
func normedAppend(f *Frame, o *arch.Op) (done bool, err error) {
	h := f.Hyper
	if h.Rope.Dim%4 != 0 || !kernels.TakesRopeNormKV(f.Rec, f.KVType, uint32(h.KeyLength)) {
		return false, nil
	}
	_, q, err := f.weight(&o.Ops[0])
	if err != nil {
		return false, err
	}
	_, k, err := f.weight(&o.Ops[1])
	if err != nil {
		return false, err
	}
	return true, kernels.RopeNormKV(f.Rec, f.KVType, ropeKV(f).Normed(q, k, h.RMSEpsilon))
}

func ropeKV(f *Frame) shaders.RopeKVArgs {
	h := f.Hyper
	pos, seq := f.positions()
	return shaders.RopeKVArgs{
		Q: f.value(arch.Q), K: f.value(arch.K), V: f.value(arch.V), CosSin: f.angles(), Pages: f.At(f.Scratch.Pages), Pos: pos, Seq: seq,
		Rows: f.n(), Heads: uint32(h.HeadCount), HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
		RopeDim: uint32(h.Rope.Dim), Neox: flag(h.Rope.Neox), MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
		QStride: f.width(arch.Q), KStride: f.width(arch.K), VStride: f.width(arch.V),
	}
}
