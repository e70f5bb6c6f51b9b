package calibrate

import (
	"slices"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/predict"
)

// Product is a multiplication of a step: up to three matrices (M, K) of one type that share X.
type Product struct {
	Type  gguf.Type
	M     [3]uint32 // rows of the matrices; 0: there is none
	K     uint32
	Gated bool // the first two are gates and what they let through
	Count int  // in a step
}

// ProductsOf lists what a step of a model multiplies, as its operations are put together.
func ProductsOf(h *arch.Hyper, m *pack.Model) []Product {
	var list productList
	for _, c := range predict.LayerClasses(h, m) {
		has := func(name string) bool { _, ok := c.First.Tensor(name); return ok }
		for _, op := range arch.Fuse(h.Layer(c.First.Layer, has)) {
			list.add(h, c.First, op, c.Count)
		}
	}
	if h.Encoder {
		return list
	}
	if head, ok := m.Unit(pack.Head, -1); ok {
		list.matrix(head, h.Head(), 1)
	} else if embed, ok := m.Unit(pack.Embed, -1); ok {
		list.matrix(embed, h.Head(), 1)
	}
	return list
}

type productList []Product

// add adds the products of an operation of a layer, whose unit is u, which a step computes count times.
func (l *productList) add(h *arch.Hyper, u *pack.Unit, op arch.Op, count int) {
	var of []arch.Op
	if op.Kind == arch.MulMat {
		of = append(of, op)
	}
	for _, o := range op.Ops {
		if o.Kind == arch.Siblings { // within products that turn
			l.add(h, u, o, count)
		}
		if o.Kind == arch.MulMat {
			of = append(of, o)
		}
	}
	of = slices.DeleteFunc(of, func(o arch.Op) bool { t, ok := u.Tensor(o.Weight); return !ok || len(t.Shape) != 2 })
	typ := func(i int) gguf.Type { t, _ := u.Tensor(of[i].Weight); return t.Type }
	for len(of) > 0 { // those of one type are one dispatch
		p := Product{Type: typ(0), K: uint32(h.Width(u.Layer, of[0].A)), Gated: op.Kind == arch.Gated && len(of) == 2 && typ(0) == typ(1), Count: count}
		var others []arch.Op
		n := 0
		for i, o := range of {
			if typ(i) != p.Type {
				others = append(others, o)
				continue
			}
			p.M[n] = uint32(h.Width(u.Layer, o.Dst))
			n++
		}
		l.put(p)
		of = others
	}
}

func (l *productList) matrix(u *pack.Unit, name string, count int) {
	if t, ok := u.Tensor(name); ok && len(t.Shape) == 2 {
		l.put(Product{Type: t.Type, M: [3]uint32{uint32(t.Shape[0])}, K: uint32(t.Shape[1]), Count: count})
	}
}

// put adds to what is there of the same shape.
func (l *productList) put(p Product) {
	for i := range *l {
		q := &(*l)[i]
		if q.Type == p.Type && q.M == p.M && q.K == p.K && q.Gated == p.Gated {
			q.Count += p.Count
			return
		}
	}
	*l = append(*l, p)
}

// CommonProducts are those of a model of 8B parameters, for want of a model.
func CommonProducts() []Product {
	var list productList
	for _, t := range []gguf.Type{gguf.Q4_K, gguf.Q6_K, gguf.Q8_0, gguf.Q4_0, gguf.F16} {
		for _, p := range []Product{{M: [3]uint32{4096, 1024, 1024}, K: 4096}, {M: [3]uint32{4096}, K: 4096}, {M: [3]uint32{14336, 14336}, K: 4096, Gated: true}, {M: [3]uint32{4096}, K: 14336}} {
			p.Type, p.Count = t, 32
			list.put(p)
		}
	}
	return list
}
