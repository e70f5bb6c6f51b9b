package record

import (
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/shaders"
)

// sigmoidMul records the product of activation o.A with the sigmoid of gates, which are values of activation o.B: all values of its rows, some
// values of each of its o.Heads heads, or one value for each head or for the whole row.
func sigmoidMul(f *Frame, o *arch.Op) error {
	cols, gates := f.width(o.A), f.width(o.B)
	a := shaders.SigmoidMulArgs{
		X: f.value(o.A), Gate: f.value(o.B), Dst: f.value(o.Dst), Rows: f.n(), Cols: cols,
		XStride: cols, DstStride: cols, GateStride: gates, Group: cols,
	}
	switch {
	case gates == uint32(o.Heads):
		a.Group, a.Jump = cols/gates, 1
	case o.Heads > 0:
		a.Gate += 4 * uint64(o.Off)
		a.Group, a.Jump, a.Step = cols/uint32(o.Heads), gates/uint32(o.Heads), 1
	case gates > 1:
		a.Step = 1
	}
	return kernels.SigmoidMul(f.Rec, a)
}

// Embed records the decoding of the step's rows of table i of the model's tables of tokens into activation dst. The rows, of quantization type t, are in the scratch
// memory.
func (f *Frame) Embed(i int, dst arch.Value, t gguf.Type) error {
	s := f.Scratch
	return kernels.GetRows(f.Rec, t, shaders.GetRowsArgs{Table: f.At(s.Embd[i]), IDs: f.At(s.IDs), Dst: f.base(dst), Rows: uint32(f.StepRows.N), Cols: f.width(dst)})
}

// GatherLogitRows records copies of the given activations of the n rows whose logits are needed, into contiguous memory: within the last layer,
// at [arch.KeepLogitRows]. The caller then sets [StepRows].OnlyLogitRows.
func (f *Frame) GatherLogitRows(values []arch.Value, n int) error {
	for _, v := range values {
		a := shaders.GetRowsArgs{Table: f.base(v), IDs: f.At(f.Scratch.LogitIDs), Dst: f.At(f.Scratch.LogitValues[v]), Rows: uint32(n), Cols: f.width(v)}
		if err := kernels.GetRows(f.Rec, gguf.F32, a); err != nil {
			return err
		}
	}
	return nil
}

// asDecode sets the recorder's role to Decode and calls do for n rows, in runs of up to [shaders.FewRows] rows. So a row's logits have the same
// bits whatever other rows its step has.
func asDecode(f *Frame, n int, do func(from, n uint64) error) error {
	f.Rec.Rows.Role = kernels.Decode
	for from := 0; from < n; from += shaders.FewRows {
		if err := do(uint64(from), uint64(min(shaders.FewRows, n-from))); err != nil {
			return err
		}
	}
	return nil
}

// Output records operations after the layers, see [arch.Hyper.Output], of the n rows whose logits are needed. If [Frame.StepRows] has other rows too, it first
// records copies that gather the n rows of X.
func (f *Frame) Output(ops []arch.Op, n int) error {
	if n < f.StepRows.N {
		a := shaders.GetRowsArgs{Table: f.base(arch.X), IDs: f.At(f.Scratch.LogitIDs), Dst: f.At(f.Scratch.Head), Rows: uint32(n), Cols: f.width(arch.X)}
		if err := kernels.GetRows(f.Rec, gguf.F32, a); err != nil {
			return err
		}
		f.StepRows.headRows = true
	}
	err := f.LogitOps(ops, n)
	f.StepRows.headRows = false
	return err
}

// LogitOps records operations after the layers of n rows whose logits are needed, be it before or after their product with the head.
func (f *Frame) LogitOps(ops []arch.Op, n int) error {
	if len(ops) == 0 {
		return nil
	}
	rows := f.Rows
	defer func() { f.Rows = rows }()
	return asDecode(f, n, func(from, n uint64) error {
		f.Rows = Rows{From: int(from), N: int(n), Role: kernels.Decode}
		for i := range ops {
			if err := f.Op(&ops[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// HeadPiece records the logits of n rows for a part of the vocabulary: the m tokens from id first on. w is the device address of their weights,
// t the type.
func (f *Frame) HeadPiece(t gguf.Type, w uint64, first, m int64, n int) error {
	s, d, v := f.Scratch, f.width(arch.Hidden), f.width(arch.Logits)
	return asDecode(f, n, func(from, n uint64) error {
		return f.multiplyRuns(&kernels.Products{
			Type: t, X: f.At(s.Head) + 4*from*uint64(d), N: uint32(n), K: d, XStride: d, DstStride: v,
			Of: [3]kernels.Matrix{{W: w, Dst: f.At(s.Logits) + 4*(from*uint64(v)+uint64(first)), M: uint32(m)}},
		})
	})
}

// Argmax records the search for the largest logit of each of n rows of logits; the kernel marks a row in which one is not finite.
func (f *Frame) Argmax(n int) error {
	return kernels.Argmax(f.Rec, shaders.ArgmaxArgs{X: f.At(f.Scratch.Logits), Dst: f.At(f.Scratch.Argmax), Rows: uint32(n), Cols: uint32(f.Hyper.VocabSize)})
}

// ropeHeads records RoPE of the heads of an activation, in place.
func ropeHeads(f *Frame, o *arch.Op) error {
	rope, angles := ropeOf(f, o)
	return kernels.Rope(f.Rec, shaders.RopeArgs{
		X: f.value(o.Dst) + 4*uint64(o.Off), CosSin: angles, Rows: f.n(), Heads: uint32(o.Heads), HeadDim: uint32(o.Cols),
		RopeDim: uint32(rope.Dim), XStride: f.width(o.Dst), Neox: flag(rope.Neox),
	})
}

// flag is 1 for true, 0 for false, as kernels take booleans.
func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}
