package record

import (
	"cmp"
	"fmt"

	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/shaders"
)

// rmsNorm records an RMS norm of rows, of each head of rows, or of a part of rows. It may have no weights.
func rmsNorm(f *Frame, o *arch.Op) error {
	w, _, _, err := weights(f, o)
	if err != nil {
		return err
	}
	a := shaders.RMSNormArgs{
		X: f.value(o.A) + 4*uint64(o.Off), W: w, Dst: f.value(o.Dst) + 4*uint64(o.Off), Rows: f.n() * uint32(o.Heads), Cols: uint32(o.Cols),
		XStride: f.width(o.A) / uint32(o.Heads), DstStride: f.width(o.Dst) / uint32(o.Heads), Eps: f.Hyper.RMSEpsilon, Scale: o.Factor, Heads: weightHeads(o),
	}
	return kernels.NormRows(f.Rec, kernels.Norm{Multiplied: o.Multiplied, RMSNormArgs: a})
}

// layerNorm records a layer norm of rows, or of each head of rows. Tensor o.Weight2 is its bias.
func layerNorm(f *Frame, o *arch.Op) error {
	w, b, _, err := weights(f, o)
	if err != nil {
		return err
	}
	return kernels.LayerNorm(f.Rec, shaders.NormArgs{
		X: f.value(o.A), W: w, B: b, Dst: f.value(o.Dst), Rows: f.n() * uint32(o.Heads), Cols: uint32(o.Cols),
		XStride: f.width(o.A) / uint32(o.Heads), DstStride: f.width(o.Dst) / uint32(o.Heads), Eps: f.Hyper.NormEpsilon, Heads: weightHeads(o),
	})
}

// weightHeads is the number of heads that a norm has weights for; 1: all heads have the same weights.
func weightHeads(o *arch.Op) uint32 {
	if o.PerHead {
		return uint32(o.Heads)
	}
	return 1
}

// gateActs has the activation functions of gated units.
var gateActs = map[arch.Kind]kernels.Act{arch.SwiGLU: kernels.SiLU, arch.GeGLU: kernels.GELU, arch.GeGLUErf: kernels.GELUErf}

// glu records a gated unit: act(gate) * up, elementwise.
func glu(f *Frame, o *arch.Op) error {
	a := shaders.GLUArgs{Gate: f.value(o.A), Up: f.value(o.B), Dst: f.value(o.Dst), Count: count(f, o)}
	return kernels.GLURows(f.Rec, kernels.GatedRows{Act: gateActs[o.Kind], Rows: f.n(), Cols: f.width(o.Dst), GLUArgs: a})
}

// act records an activation function, elementwise.
func act(f *Frame, o *arch.Op) error {
	x, dst, n, p := f.value(o.A), f.value(o.Dst), count(f, o), &o.Params
	switch o.Activation {
	case arch.GELU:
		return kernels.Unary(f.Rec, kernels.GELU, shaders.UnaryArgs{X: x, Dst: dst, Count: n})
	case arch.GELUErf:
		return kernels.Unary(f.Rec, kernels.GELUErf, shaders.UnaryArgs{X: x, Dst: dst, Count: n})
	case arch.ReLU2:
		return kernels.Unary(f.Rec, kernels.ReLU2, shaders.UnaryArgs{X: x, Dst: dst, Count: n})
	case arch.XIELU:
		return kernels.XIELU(f.Rec, shaders.XIELUArgs{X: x, Dst: dst, Count: n, AlphaP: p[0], AlphaN: p[1], Beta: p[2], Eps: p[3]})
	case arch.Clamp:
		return kernels.Clamp(f.Rec, shaders.ClampArgs{X: x, Dst: dst, Count: n, Min: p[0], Max: p[1]})
	}
	return fmt.Errorf("activation %d has no kernel", o.Activation)
}

// bias records the addition of a bias to each row.
func bias(f *Frame, o *arch.Op) error {
	_, w, err := f.weight(o)
	if err != nil {
		return err
	}
	return kernels.Add(f.Rec, shaders.AddArgs{A: f.value(o.Dst), B: w, Dst: f.value(o.Dst), Count: count(f, o), BCols: f.width(o.Dst)})
}

// add records the elementwise sum of two activations, the second of which may have a factor.
func add(f *Frame, o *arch.Op) error {
	a, b, dst, n := f.value(o.A), f.value(o.B), f.value(o.Dst), count(f, o)
	if o.Factor != 0 {
		return kernels.AddScaled(f.Rec, shaders.AddScaledArgs{A: a, B: b, Dst: dst, Count: n, Factor: o.Factor})
	}
	return kernels.Add(f.Rec, shaders.AddArgs{A: a, B: b, Dst: dst, Count: n, BCols: n})
}

// addRows records the addition of rows of a tensor by position.
func addRows(f *Frame, o *arch.Op) error {
	t, w, err := f.weight(o)
	if err != nil {
		return err
	}
	pos, _ := f.positions()
	return kernels.AddRows(f.Rec, t.Type, shaders.AddRowsArgs{Table: w, IDs: pos, Dst: f.value(o.Dst), Rows: f.n(), Cols: f.width(o.Dst)})
}

// mul records the elementwise product of two activations. The second may have one value for several of the first, one after the other.
func mul(f *Frame, o *arch.Op) error {
	n, b := count(f, o), f.n()*f.width(o.B)
	return kernels.Mul(f.Rec, shaders.MulArgs{A: f.value(o.A), B: f.value(o.B), Dst: f.value(o.Dst), Count: n, Repeat: n / max(1, b), BCount: b})
}

// mulWeight records the product of each row with a weight, of Cols values: one for each column, or one for all.
func mulWeight(f *Frame, o *arch.Op) error {
	_, w, err := f.weight(o)
	if err != nil {
		return err
	}
	return kernels.Mul(f.Rec, shaders.MulArgs{A: f.value(o.A), B: w, Dst: f.value(o.Dst), Count: count(f, o), Repeat: 1, BCount: uint32(o.Cols)})
}

// scale records the product of an activation with a factor.
func scale(f *Frame, o *arch.Op) error {
	return kernels.Scale(f.Rec, shaders.ScaleArgs{X: f.value(o.A), Dst: f.value(o.Dst), Count: count(f, o), Factor: o.Factor})
}

// scaleRows records the product of each row with its factor by [arch.Hyper].RowScale.
func scaleRows(f *Frame, o *arch.Op) error {
	scales := f.At(f.Scratch.RowScales)
	if f.StepRows.OnlyLogitRows {
		scales = f.At(f.Scratch.LogitScales)
	}
	return kernels.Mul(f.Rec, shaders.MulArgs{
		A: f.value(o.A), B: scales + 4*uint64(f.Rows.From), Dst: f.value(o.Dst), Count: count(f, o), Repeat: f.width(o.Dst), BCount: f.n(),
	})
}

// scaleLogits records the factor and the bound of logits.
func scaleLogits(f *Frame, o *arch.Op) error {
	if o.SoftCap == 0 {
		return scale(f, o)
	}
	return kernels.SoftCap(f.Rec, shaders.SoftCapArgs{X: f.value(o.A), Dst: f.value(o.Dst), Count: count(f, o), Factor: cmp.Or(o.Factor, 1), Cap: o.SoftCap})
}

// headCopy copies, for each head of o.Dst, o.Cols values of activation o.A, from value o.OffA of the head on, to o.Dst, from value o.Off of the head on. With
// o.OneHead, o.A has one head, which all heads of o.Dst get.
func headCopy(f *Frame, o *arch.Op) error {
	heads, repeat := uint32(o.Heads), uint32(1)
	if o.OneHead {
		repeat = heads
	}
	return kernels.Cpy(f.Rec, shaders.CpyArgs{
		X: f.value(o.A) + 4*uint64(o.OffA), Dst: f.value(o.Dst) + 4*uint64(o.Off), Rows: f.n() * heads, Cols: uint32(o.Cols),
		XStride: f.width(o.A) * repeat / heads, DstStride: f.width(o.Dst) / heads, Repeat: repeat,
	})
}

// count is the number of values of the rows that an operation writes.
func count(f *Frame, o *arch.Op) uint32 { return f.n() * f.width(o.Dst) }

// weights returns the device addresses of an operation's tensors, 0 for those that it does not have.
func weights(f *Frame, o *arch.Op) (w, w2, w3 uint64, err error) {
	if w, err = address(f, o.Weight); err == nil {
		w2, err = address(f, o.Weight2)
	}
	if err == nil {
		w3, err = address(f, o.Weight3)
	}
	return w, w2, w3, err
}

// address is the device address of the tensor with a name, 0 for no name.
func address(f *Frame, name string) (uint64, error) {
	if name == "" {
		return 0, nil
	}
	_, at, err := f.Tensor(name)
	return at, err
}
