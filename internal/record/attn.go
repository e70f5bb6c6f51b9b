package record

import (
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

// kvAppend records the writes of the rows' K and V to the KV cache.
func kvAppend(f *Frame, o *arch.Op) error {
	s := f.shape()
	pos, seq := f.positions()
	return kernels.KVAppend(f.Rec, f.KVType, shaders.KVAppendArgs{
		K: f.value(o.A), V: f.value(o.B), Pages: f.At(f.Scratch.Pages), Pos: pos, Seq: seq,
		Rows: f.n(), HeadsKV: uint32(s.HeadCountKV), KeyLen: uint32(s.KeyLength), ValLen: uint32(s.ValueLength),
		MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
		KStride: f.width(o.A), VStride: f.width(o.B),
	})
}

// attention records attention of the rows over the KV cache, in several dispatches if one would run too long.
func attention(f *Frame, o *arch.Op) error {
	_, sinks, err := f.weight(o)
	if err != nil {
		return err
	}
	s := f.shape()
	at := f.attended(o.Mask)
	f.Rec.Rows.Positions, f.Rec.Rows.Window = at.positions, at.window
	perRow := 2 * float64(at.width()) * float64(s.HeadCount) * float64(s.KeyLength+s.ValueLength)
	q, dst := f.width(o.A), f.width(o.Dst)
	a := shaders.FlashAttnArgs{
		Pages: f.At(f.Scratch.Pages), Sinks: sinks,
		Heads: uint32(s.HeadCount), HeadsKV: uint32(s.HeadCountKV), KeyLen: uint32(s.KeyLength), ValLen: uint32(s.ValueLength),
		MaxPages: uint32(f.Batch.MaxPages), PagePositions: plan.PagePositions, LayerOff: f.cacheOff(),
		QStride: q, DstStride: dst, Scale: f.Hyper.AttentionScale, SoftCap: o.SoftCap,
	}
	if o.Factor != 0 {
		a.Scale = o.Factor
	}
	if f.Hyper.ALiBi != 0 {
		a.Slopes = f.At(f.Scratch.Slopes)
	}
	return f.Commands.ByRows(f.n(), perRow, func(from, n uint32) error {
		part := a
		part.Q, part.Dst = f.value(o.A)+4*uint64(from)*uint64(q), f.value(o.Dst)+4*uint64(from)*uint64(dst)
		part.Seen, part.Seq, part.Rows = at.seen+8*uint64(from), at.seq+4*uint64(from), n
		return kernels.FlashAttn(f.Rec, f.KVType, part)
	})
}

// attended is what the rows of [Frame.Rows] attend to by one of the model's masks.
type attended struct {
	seen      uint64 // device address, for the first row: of the first and the last position that it sees
	seq       uint64 // device address, for the first row: of the index of its sequence
	positions uint32 // most positions of a row's sequence that it could see
	window    uint32 // most positions that the mask lets a row see; 0: all
}

// attended finds what the rows attend to by the model's mask of the given index.
func (f *Frame) attended(mask int) attended {
	m, of, first := &f.Hyper.Masks[mask], f.Scratch, uint64(f.Rows.From)
	a := attended{f.At(of.Seen[mask]), f.At(of.Seq), uint32(f.Rows.Longest), uint32(m.Width())}
	if f.StepRows.OnlyLogitRows {
		a.seen, a.seq = f.At(of.LogitSeen[mask]), f.At(of.LogitSeq)
	}
	if m.Ahead() { // also rows of other spans
		a.positions = uint32(f.Batch.MaxPages * plan.PagePositions)
	}
	a.seen, a.seq = a.seen+8*first, a.seq+4*first
	return a
}

// width is the most positions that a row sees.
func (a *attended) width() uint32 {
	if a.window > 0 {
		return min(a.window, a.positions)
	}
	return a.positions
}
