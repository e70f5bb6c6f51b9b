package record

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/shaders"
)

// route records the choice of each row's experts and their weights, by the router's scores. If [Frame.Lookup] names this layer, the kernel also
// looks up whether all chosen experts are in VRAM.
func route(f *Frame, o *arch.Op) error {
	_, bias, err := f.weight(o)
	if err != nil {
		return err
	}
	a := routeArgs(f, f.value(o.A), bias)
	if o.Weight2 != "" {
		if _, a.Scales, err = f.Tensor(o.Weight2); err != nil {
			return err
		}
	}
	return kernels.TopKMoE(f.Rec, a)
}

// routeArgs returns the arguments of the kernel that chooses experts. scores and bias are device addresses: of the router's scores, and of the
// bias added to them for the choice, 0 if the model has none.
func routeArgs(f *Frame, scores, bias uint64) shaders.TopKMoEArgs {
	x := &f.Hyper.Experts
	a := shaders.TopKMoEArgs{
		X: scores, Bias: bias, IDs: f.value(arch.Chosen), Weights: f.value(arch.ChosenWeights),
		Rows: f.n(), Experts: uint32(x.Count), Used: uint32(x.Used), Gating: uint32(x.Gating), Scale: x.Scale,
		Groups: uint32(x.Groups), GroupsUsed: uint32(x.GroupsUsed), GroupBest: uint32(x.GroupBest),
	}
	if f.Lookup.Layer == f.Layer {
		a.Residents = f.Lookup.Address
	}
	if x.Normalise {
		a.Gating |= shaders.GateNormalised
	}
	return a
}

// normedRoute records a norm, a router and the choice of experts as one dispatch; done is false if no kernel does that.
func normedRoute(f *Frame, o *arch.Op) (done bool, err error) {
	norm, product, choice := &o.Ops[0], &o.Ops[1], &o.Ops[2]
	_, w, err := f.weight(norm)
	if err != nil {
		return false, err
	}
	t, router, err := f.weight(product)
	if err != nil {
		return false, err
	}
	_, bias, err := f.weight(choice)
	if err != nil {
		return false, err
	}
	c := routeArgs(f, f.value(choice.A), bias)
	a := shaders.TopKMoERoutedArgs{
		X: f.value(norm.A), W: w, Router: router, Dst: f.value(norm.Dst), Scores: c.X, Bias: c.Bias, IDs: c.IDs, Weights: c.Weights,
		Rows: c.Rows, Cols: f.width(norm.A), Experts: c.Experts, Used: c.Used, Gating: c.Gating,
		Groups: c.Groups, GroupsUsed: c.GroupsUsed, Scale: c.Scale, GroupBest: c.GroupBest, Eps: f.Hyper.RMSEpsilon, Residents: c.Residents,
	}
	return kernels.RouteNormed(f.Rec, &kernels.RoutedTopK{Router: t.Type, TopKMoERoutedArgs: a})
}

// RecordLookup records a kernel that looks up, in the table at this device address, whether all experts chosen for a row are in VRAM. The kernel
// writes the answer to memory that the table points to.
func (f *Frame) RecordLookup(table uint64) error {
	return kernels.LookupExperts(f.Rec, shaders.LookupExpertsArgs{Residents: table, IDs: f.value(arch.Chosen), Count: uint32(f.Hyper.Experts.Used)})
}

// LayerExperts records the operations o.Ops for the rows of [Frame.Rows] and the experts that [Frame.Experts] has addresses of, in several
// dispatches if one would run too long. sample gives the types of an expert's tensors: all experts of the layer have the same.
func (f *Frame) LayerExperts(o *arch.Op, sample Tensors) error {
	h, perExpert := f.Hyper, 0.0
	for i := range o.Ops {
		if e := &o.Ops[i]; e.Kind == arch.MulMatID {
			perExpert += 2 * float64(pairWidth(f, e.Dst)) * float64(pairWidth(f, e.A)) * float64(f.Rows.N) * float64(h.Experts.Used) / float64(h.Experts.Count)
		}
	}
	first, last := uint32(f.Experts.First), uint32(f.Experts.Last)
	return f.Commands.ByRows(last-first, perExpert*(1-f.Absent), func(from, n uint32) error {
		return expertOps(f, o, len(o.Ops), sample, first+from, first+from+n)
	})
}

// EachSpan calls [Frame.LayerExperts] for each span of [Frame.StepRows]. On return [Frame.Rows] is the last span.
func (f *Frame) EachSpan(o *arch.Op, sample Tensors) error {
	for i := range f.StepRows.Spans {
		f.SetRows(f.StepRows.Spans[i])
		if err := f.LayerExperts(o, sample); err != nil {
			return err
		}
	}
	return nil
}

// Tensors finds a tensor by name: a unit of the plan, or a whole model.
type Tensors interface {
	Tensor(name string) (*pack.Tensor, bool)
}

// expertOps records the first n operations of o for experts first up to last, not last itself. It fuses gate, up
// and their SwiGLU where a kernel does that.
func expertOps(f *Frame, o *arch.Op, n int, sample Tensors, first, last uint32) error {
	for i := 0; i < n; i++ {
		e := &o.Ops[i]
		var err error
		switch e.Kind {
		case arch.MulMatID:
			var p kernels.ExpertProducts
			if p, err = expertProducts(f, o, i, sample, first, last); err != nil {
				return err
			}
			var done bool
			if done, err = gatedExperts(f, o, i, sample, p); done {
				i += 2
			} else if err == nil {
				err = kernels.MulMatID(f.Rec, p.Type, p.MulMatIDArgs, p.Experts)
			}
		case arch.SwiGLU, arch.GeGLU, arch.GeGLUErf:
			cols := pairWidth(f, e.Dst)
			pairs := f.n() * f.width(e.Dst) / cols
			err = kernels.GLURows(f.Rec, kernels.GatedRows{Act: gateActs[e.Kind], Rows: pairs, Cols: cols, GLUArgs: shaders.GLUArgs{Gate: f.value(e.A), Up: f.value(e.B), Dst: f.value(e.Dst), Count: pairs * cols}})
		default:
			err = eachPair(f, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gatedExperts records operations i, i+1 and i+2 of o as one dispatch if they are the products gate and up and their SwiGLU; done is false if
// they are not, or if no kernel does that. p is the product gate.
func gatedExperts(f *Frame, o *arch.Op, i int, sample Tensors, p kernels.ExpertProducts) (done bool, err error) {
	if i+2 >= len(o.Ops) {
		return false, nil
	}
	gate, up, glu := &o.Ops[i], &o.Ops[i+1], &o.Ops[i+2]
	if up.Kind != arch.MulMatID || up.A != gate.A || glu.Kind != arch.SwiGLU || glu.A != gate.Dst || glu.B != up.Dst {
		return false, nil
	}
	other, err := expertProducts(f, o, i+1, sample, p.First, p.Last)
	if err != nil || other.Type != p.Type {
		return false, err
	}
	p.Up, p.Dst = other.Table, f.value(glu.Dst)
	return kernels.MultiplyExperts(f.Rec, &p)
}

// ExpertProducts lists the products in o.Ops, in the order of the matrices of an [ExpertTable].
func ExpertProducts(o *arch.Op) (products []arch.Op) {
	for i := range o.Ops {
		if o.Ops[i].Kind == arch.MulMatID {
			products = append(products, o.Ops[i])
		}
	}
	return products
}

// matrixOf is the index among the matrices of an [ExpertTable] of the one that operation i of o, a product, reads.
func matrixOf(o *arch.Op, i int) (n int) {
	for k := range o.Ops[:i] {
		if o.Ops[k].Kind == arch.MulMatID {
			n++
		}
	}
	return n
}

// MatrixOff is the offset, in the memory of a unit of one expert, of the matrix that a product reads, and the tensor that holds the matrix.
func MatrixOff(u *pack.Unit, product *arch.Op) (off uint64, t *pack.Tensor, err error) {
	t, ok := u.Tensor(product.Weight)
	if !ok {
		return 0, nil, fmt.Errorf("tensor %q is not in %s", product.Weight, u.Name)
	}
	return uint64(t.UnitOff) + RowOff(t, product.Row), t, nil
}

// expertProducts returns the arguments of the product that is operation i of o, for experts first up to last, not last itself.
func expertProducts(f *Frame, o *arch.Op, i int, sample Tensors, first, last uint32) (p kernels.ExpertProducts, err error) {
	h, e := f.Hyper, &o.Ops[i]
	t, ok := sample.Tensor(e.Weight)
	if !ok {
		return p, fmt.Errorf("tensor %q is not among an expert's", e.Weight)
	}
	x, m, k := &h.Experts, pairWidth(f, e.Dst), pairWidth(f, e.A)
	p = kernels.ExpertProducts{Type: t.Type, Experts: uint32(x.Count), MulMatIDArgs: shaders.MulMatIDArgs{
		Table: f.Experts.Address + uint64(8*matrixOf(o, i)*x.Count), X: f.value(e.A), Dst: f.value(e.Dst), IDs: f.value(arch.Chosen),
		M: m, K: k, Count: uint32(f.Rows.N * x.Used), Used: uint32(x.Used), XStride: k, DstStride: m, First: first, Last: last,
	}}
	if e.A.PerPair() {
		p.Used = 1
	}
	if kernels.SortsPairs(f.Rec, f.n()) {
		p.Pairs, p.Tiles = f.value(arch.Pairs), f.At(f.Scratch.Tiles)
	}
	return p, nil
}

// Constants of the gated activation function of gpt-oss, see [shaders.SwiGLUOAIArgs].
const (
	oaiAlpha = 1.702 // factor of the gate within its sigmoid
	oaiLimit = 7     // the gate is at most this, and up is at most this far from 0
)

// eachPair records an elementwise operation between the products of experts: a sum, a product, or an activation; it fails for other kinds. It
// computes all (row, expert) pairs. For experts outside the current wave the outputs are garbage, which no later product reads.
func eachPair(f *Frame, o *arch.Op) error {
	switch o.Kind {
	case arch.Add:
		return add(f, o)
	case arch.Mul:
		return mul(f, o)
	case arch.Act:
		return act(f, o)
	case arch.SwiGLUOAI:
		return kernels.SwiGLUOAI(f.Rec, shaders.SwiGLUOAIArgs{Gate: f.value(o.A), Up: f.value(o.B), Dst: f.value(o.Dst), Count: count(f, o), Alpha: oaiAlpha, Limit: oaiLimit})
	}
	return fmt.Errorf("operation %d has no kernel for experts", o.Kind)
}

// pairRows records a copy, for each (row, expert) pair, of one row of a matrix: the row that belongs to the expert, such as its bias.
func pairRows(f *Frame, o *arch.Op) error {
	t, w, err := f.weight(o)
	if err != nil {
		return err
	}
	return kernels.GetRows(f.Rec, t.Type, shaders.GetRowsArgs{Table: w, IDs: f.value(o.A), Dst: f.value(o.Dst), Rows: f.n() * f.width(o.A), Cols: pairWidth(f, o.Dst)})
}

// sumExperts records, for each row, the sum of its experts' outputs, weighted unless the operation is plain, and of the residual, if it has one.
func sumExperts(f *Frame, o *arch.Op) error {
	d := f.width(o.Dst)
	a := shaders.SumExpertsArgs{
		Y: f.value(o.A), Dst: f.value(o.Dst), Rows: f.n(), Used: uint32(f.Hyper.Experts.Used), Cols: d, DstStride: d,
	}
	if !o.Plain {
		a.Weights = f.value(arch.ChosenWeights)
	}
	if o.B != arch.None {
		a.Residual = f.value(o.B)
	}
	return kernels.SumExperts(f.Rec, a)
}

// pairScale records, for each row and each of its chosen experts, the row times the expert's weight.
func pairScale(f *Frame, o *arch.Op) error {
	return kernels.PairScale(f.Rec, shaders.PairScaleArgs{
		X: f.value(o.A), Weights: f.value(arch.ChosenWeights), Dst: f.value(o.Dst), Rows: f.n(), Used: uint32(f.Hyper.Experts.Used), Cols: f.width(o.A),
	})
}
