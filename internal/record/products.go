package record

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

// mulMat records a product with one matrix, in several dispatches if one would run too long.
func mulMat(f *Frame, o *arch.Op) error {
	t, w, err := f.weight(o)
	if err != nil {
		return err
	}
	p := productsOf(f, o.A)
	p.Type, p.DstStride, p.Of[0] = t.Type, f.width(o.Dst), kernels.Matrix{W: w, Dst: f.value(o.Dst), M: f.width(o.Dst)}
	return f.multiplyRuns(&p)
}

// headMulMat records a product for each head: each head has its own matrix.
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

// linear returns the matrix of the product that ops begin with, with its scale and its bias if these are the next operations; n is the number of operations
// that the matrix stands for.
func linear(f *Frame, ops []arch.Op) (t *pack.Tensor, m kernels.Matrix, n int, err error) {
	t, m.W, err = f.weight(&ops[0])
	if err != nil {
		return nil, m, 0, err
	}
	m.Dst, m.M, n = f.value(ops[0].Dst), f.width(ops[0].Dst), 1
	if n < len(ops) && ops[n].Kind == arch.MulWeight {
		if _, m.Scale, err = f.weight(&ops[n]); err != nil {
			return nil, m, 0, err
		}
		n++
	}
	if n < len(ops) && ops[n].Kind == arch.Bias {
		_, m.Bias, err = f.weight(&ops[n])
		n++
	}
	return t, m, n, err
}

// productsOf returns products whose input X is activation a, for the rows of [Frame.Rows]. Only X and its sizes are set: the caller adds matrices
// and outputs.
func productsOf(f *Frame, a arch.Value) kernels.Products {
	return kernels.Products{X: f.value(a), N: f.n(), K: f.width(a), XStride: f.width(a)}
}

// multiply records products of one input by one kernel; done is false, and nothing is recorded, if no kernel computes them together. It uses
// several dispatches for many rows if one would run too long.
func (f *Frame) multiply(all *kernels.Products) (done bool, err error) {
	if all.N <= shaders.FewRows {
		return kernels.Multiply(f.Rec, all)
	}
	if kernels.ProductVariant(f.Rec, all) == "" {
		return false, nil
	}
	return true, f.multiplyRuns(all)
}

// multiplyRuns records products that one kernel computes together, in runs of rows if one dispatch would run too long. A single matrix always
// has such a kernel.
func (f *Frame) multiplyRuns(all *kernels.Products) error {
	perRow := 0.0
	for i := range all.Of {
		perRow += 2 * float64(all.Of[i].M) * float64(all.K)
	}
	return f.Commands.ByRows(all.N, perRow, func(from, n uint32) error {
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
		done, err := kernels.Multiply(f.Rec, &p)
		if err == nil && !done {
			err = fmt.Errorf("record products of %d of %d rows: no kernel fits, but one fits all", n, all.N)
		}
		return err
	})
}

// byType groups up to three products of one input by the type of their weights; kinds is the number of groups. With placed, product i becomes
// matrix i of its group, and the matrices of products in other groups stay empty; without, the matrices of a group have no gaps.
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

// siblings records products of one input, those with weights of one type together. done is false, and nothing is recorded, if for one of the
// types no kernel can do that.
func siblings(f *Frame, o *arch.Op) (done bool, err error) {
	types, kinds, err := byType(f, o.Ops, false)
	if err != nil {
		return false, err
	}
	for i := range types[:kinds] {
		if kernels.ProductVariant(f.Rec, &types[i]) == "" {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		if _, err := f.multiply(&types[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// gated records the products gate and up and their SwiGLU as one; done is false if the types of their weights differ or no kernel does that.
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
	return f.multiply(&p)
}

// added records a product, with its scale and its bias if it has them, and the addition of a residual as one; done is false if no kernel does that.
func added(f *Frame, o *arch.Op) (done bool, err error) {
	t, m, _, err := linear(f, o.Ops)
	if err != nil {
		return false, err
	}
	p := productsOf(f, o.A)
	p.Type, p.DstStride = t.Type, f.width(o.Dst)
	m.Dst = f.value(o.Dst)
	p.Of[0] = m
	p.Residual, p.ResidualStride = f.value(o.B), f.width(o.B)
	return f.multiply(&p)
}

// ropedProducts records the products of Q, K and V together with RoPE and the writes of K and V to the KV cache. done is false, and nothing is
// recorded, if no kernel does that.
func ropedProducts(f *Frame, o *arch.Op) (done bool, err error) {
	types, kinds, err := byType(f, o.Ops[0].Ops, true)
	if err != nil {
		return false, err
	}
	all := kernels.RopedProducts{KV: f.KVType, Rope: ropeKVArgs(f, o)}
	for i := range types[:kinds] {
		if all.Products = types[i]; !kernels.FitsRoped(f.Rec, &all) {
			return false, nil
		}
	}
	for i := range types[:kinds] {
		all.Products = types[i]
		if _, err := kernels.MultiplyRoped(f.Rec, &all); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ropedAppend records RoPE of Q and K and the writes of K and V to the KV cache as one; done is false if no kernel does that.
func ropedAppend(f *Frame, o *arch.Op) (done bool, err error) {
	return kernels.AppendRoped(f.Rec, &kernels.RopeAppend{KV: f.KVType, RopeNormKVArgs: ropeKVArgs(f, o).Normed(0, 0, 0)})
}

// normedRopedAppend is [ropedAppend] with RMS norms of the heads of Q and K before RoPE. o.Ops[0] and o.Ops[1] name the weights of the norms.
func normedRopedAppend(f *Frame, o *arch.Op) (done bool, err error) {
	_, q, err := f.weight(&o.Ops[0])
	if err != nil {
		return false, err
	}
	_, k, err := f.weight(&o.Ops[1])
	if err != nil {
		return false, err
	}
	return kernels.AppendRoped(f.Rec, &kernels.RopeAppend{KV: f.KVType, RopeNormKVArgs: ropeKVArgs(f, o).Normed(q, k, f.Hyper.RMSEpsilon)})
}

// ropeKVArgs returns the arguments of kernels that fuse RoPE on Q and K by the rope of o with the writes to the KV cache, for the layer and the rows of f.
func ropeKVArgs(f *Frame, o *arch.Op) shaders.RopeKVArgs {
	s := f.shape()
	rope, angles := ropeOf(f, o)
	pos, seq := f.positions()
	return shaders.RopeKVArgs{
		Q: f.value(arch.Q), K: f.value(arch.K), V: f.value(arch.V), CosSin: angles, Pages: f.At(f.Scratch.Pages), Pos: pos, Seq: seq,
		Rows: f.n(), Heads: uint32(s.HeadCount), HeadsKV: uint32(s.HeadCountKV), KeyLen: uint32(s.KeyLength), ValLen: uint32(s.ValueLength),
		RopeDim: uint32(rope.Dim), Neox: flag(rope.Neox), MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
		QStride: f.width(arch.Q), KStride: f.width(arch.K), VStride: f.width(arch.V),
	}
}
