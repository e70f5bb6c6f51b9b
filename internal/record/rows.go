package record

import (
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

func rmsNorm(f *Frame, o *arch.Op) error {
	_, w, err := f.weight(o)
	if err != nil {
		return err
	}
	a := shaders.RMSNormArgs{
		X: f.value(o.A), W: w, Dst: f.value(o.Dst), Rows: f.n() * uint32(o.Heads), Cols: uint32(o.Cols),
		XStride: f.width(o.A) / uint32(o.Heads), DstStride: f.width(o.Dst) / uint32(o.Heads), Eps: f.Hyper.RMSEpsilon,
	}
	return kernels.NormRows(f.Rec, kernels.Norm{Multiplied: o.Multiplied, RMSNormArgs: a})
}

func bias(f *Frame, o *arch.Op) error {
	_, w, err := f.weight(o)
	if err != nil {
		return err
	}
	return kernels.Add(f.Rec, shaders.AddArgs{A: f.value(o.Dst), B: w, Dst: f.value(o.Dst), Count: f.n() * f.width(o.Dst), BCols: f.width(o.Dst)})
}

func add(f *Frame, o *arch.Op) error {
	n := f.n() * f.width(o.Dst)
	return kernels.Add(f.Rec, shaders.AddArgs{A: f.value(o.A), B: f.value(o.B), Dst: f.value(o.Dst), Count: n, BCols: n})
}

func swiGLU(f *Frame, o *arch.Op) error {
	a := shaders.GLUArgs{Gate: f.value(o.A), Up: f.value(o.B), Dst: f.value(o.Dst), Count: f.n() * f.width(o.Dst)}
	return kernels.SwiGLURows(f.Rec, kernels.GatedRows{Rows: f.n(), Cols: f.width(o.Dst), GLUArgs: a})
}

// sigmoidMul records a product with gates: one for each value, perhaps a part of a head each, or one for the row.
func sigmoidMul(f *Frame, o *arch.Op) error {
	cols, gates := f.width(o.A), f.width(o.B)
	a := shaders.SigmoidMulArgs{
		X: f.value(o.A), Gate: f.value(o.B), Dst: f.value(o.Dst), Rows: f.n(), Cols: cols,
		XStride: cols, DstStride: cols, GateStride: gates, Group: cols,
	}
	switch {
	case o.Heads > 0:
		a.Gate += 4 * uint64(o.Off)
		a.Group, a.Jump, a.Step = cols/uint32(o.Heads), gates/uint32(o.Heads), 1
	case gates > 1:
		a.Step = 1
	}
	return kernels.SigmoidMul(f.Rec, a)
}

// headCopy records a copy of a part of each head.
func headCopy(f *Frame, o *arch.Op) error {
	heads := uint32(o.Heads)
	return kernels.Cpy(f.Rec, shaders.CpyArgs{
		X: f.value(o.A) + 4*uint64(o.OffA), Dst: f.value(o.Dst) + 4*uint64(o.Off), Rows: f.n() * heads, Cols: uint32(o.Cols),
		XStride: f.width(o.A) / heads, DstStride: f.width(o.Dst) / heads,
	})
}

// Embed decodes the embeddings of the step's tokens, rows of a table of type t, into the residual stream.
func (f *Frame) Embed(t gguf.Type) error {
	s := f.Scratch
	return kernels.GetRows(f.Rec, t, shaders.GetRowsArgs{Table: f.At(s.Embd), IDs: f.At(s.IDs), Dst: f.base(arch.X), Rows: uint32(f.AtHand.N), Cols: uint32(f.Hyper.EmbeddingLength)})
}

// Keep gathers values of the rows that want logits, n of them, to where they go on without the others.
func (f *Frame) Keep(values []arch.Value, n int) error {
	for _, v := range values {
		a := shaders.GetRowsArgs{Table: f.base(v), IDs: f.At(f.Scratch.LogitIDs), Dst: f.At(f.Scratch.Kept[v]), Rows: uint32(n), Cols: f.width(v)}
		if err := kernels.GetRows(f.Rec, gguf.F32, a); err != nil {
			return err
		}
	}
	return nil
}

// decoded runs do over n rows as rows to decode are, [shaders.FewRows] at a time.
func decoded(f *Frame, n int, do func(from, n uint64) error) error {
	f.Rec.Role = kernels.Decode
	for from := 0; from < n; from += shaders.FewRows {
		if err := do(uint64(from), uint64(min(shaders.FewRows, n-from))); err != nil {
			return err
		}
	}
	return nil
}

// HeadNorm normalises the residual stream of the rows that want logits, n of those at hand, by the output norm at w: the input of
// the head.
func (f *Frame) HeadNorm(w uint64, n int) error {
	s, d, x := f.Scratch, uint32(f.Hyper.EmbeddingLength), f.base(arch.X)
	if n < f.AtHand.N {
		a := shaders.GetRowsArgs{Table: x, IDs: f.At(s.LogitIDs), Dst: f.At(s.Head), Rows: uint32(n), Cols: d}
		if err := kernels.GetRows(f.Rec, gguf.F32, a); err != nil {
			return err
		}
		x = f.At(s.Head)
	}
	return decoded(f, n, func(from, n uint64) error {
		at := 4 * from * uint64(d)
		return kernels.NormRows(f.Rec, kernels.Norm{Multiplied: true, RMSNormArgs: shaders.RMSNormArgs{X: x + at, W: w, Dst: f.At(s.Head) + at, Rows: uint32(n), Cols: d, XStride: d, DstStride: d, Eps: f.Hyper.RMSEpsilon}})
	})
}

// HeadPiece computes the logits of n rows for a run of the vocabulary: m tokens from first on, whose weights of type t are at w.
func (f *Frame) HeadPiece(t gguf.Type, w uint64, first, m int64, n int) error {
	s, d, v := f.Scratch, uint32(f.Hyper.EmbeddingLength), uint32(f.Hyper.VocabSize)
	return decoded(f, n, func(from, n uint64) error {
		return f.inRuns(&kernels.Products{
			Type: t, X: f.At(s.Head) + 4*from*uint64(d), N: uint32(n), K: d, XStride: d, DstStride: v,
			Of: [3]kernels.Matrix{{W: w, Dst: f.At(s.Logits) + 4*(from*uint64(v)+uint64(first)), M: uint32(m)}},
		})
	})
}

// Argmax finds the likeliest token of each of n rows of logits.
func (f *Frame) Argmax(n int) error {
	return kernels.Argmax(f.Rec, shaders.ArgmaxArgs{X: f.At(f.Scratch.Logits), Dst: f.At(f.Scratch.Argmax), Rows: uint32(n), Cols: uint32(f.Hyper.VocabSize)})
}

func ropeTurn(f *Frame, o *arch.Op) error {
	h := f.Hyper
	return kernels.Rope(f.Rec, shaders.RopeArgs{
		X: f.value(o.Dst) + 4*uint64(o.Off), CosSin: f.angles(), Rows: f.n(), Heads: uint32(o.Heads), HeadDim: uint32(o.Cols),
		RopeDim: uint32(h.Rope.Dim), XStride: f.width(o.Dst), Neox: flag(h.Rope.Neox),
	})
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func kvAppend(f *Frame, o *arch.Op) error {
	h := f.Hyper
	pos, seq := f.positions()
	return kernels.KVAppend(f.Rec, f.KVType, shaders.KVAppendArgs{
		K: f.value(o.A), V: f.value(o.B), Pages: f.At(f.Scratch.Pages), Pos: pos, Seq: seq,
		Rows: f.n(), HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
		MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
		KStride: f.width(o.A), VStride: f.width(o.B),
	})
}

func attention(f *Frame, o *arch.Op) error {
	_, sinks, err := f.weight(o)
	if err != nil {
		return err
	}
	h, longest := f.Hyper, f.Rows.Longest
	perRow := 2 * float64(longest) * float64(h.HeadCount) * float64(h.KeyLength+h.ValueLength)
	q, dst := f.width(o.A), f.width(o.Dst)
	pos, seq := f.positions()
	f.Rec.Positions = uint32(longest)
	return f.Commands.ByRows(f.n(), perRow, func(from, n uint32) error {
		return kernels.FlashAttn(f.Rec, f.KVType, shaders.FlashAttnArgs{
			Q: f.value(o.A) + uint64(from)*uint64(q)*4, Dst: f.value(o.Dst) + uint64(from)*uint64(dst)*4,
			Pages: f.At(f.Scratch.Pages), Pos: pos + 4*uint64(from), Seq: seq + 4*uint64(from),
			Rows: n, Heads: uint32(h.HeadCount), HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
			MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
			QStride: q, DstStride: dst, Scale: h.AttentionScale, Window: uint32(o.Window), Sinks: sinks,
		})
	})
}
