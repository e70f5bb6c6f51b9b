package exec

import (
	"leat/internal/arch"
	"leat/shaders"
)

// stateOff is where layer l's part of a state begins.
func (r *run) stateOff(l int) int64 {
	h := r.e.Hyper
	return int64(h.StateLayer(l)) * (h.ConvBytes() + h.NetBytes())
}

// ssmConv records a convolution over the rows of each sequence.
func (r *run) ssmConv(o *arch.Op, layer int, weight uint64) error {
	h, s, cols := r.e.Hyper, &r.e.Plan.Scratch, r.width(o.A)
	return r.rec.SSMConv(shaders.SSMConvArgs{
		X: r.value(o.A), W: weight, Dst: r.value(o.Dst), States: r.addr(s.States), Seq: r.addr(s.Seq), Pos: r.addr(s.Pos),
		Rows: uint32(len(r.rows)), Cols: cols, Taps: uint32(h.Net.Taps), XStride: cols, DstStride: cols,
		Sequences: uint32(r.sequenceCount), StateOff: uint32(r.stateOff(layer)),
	})
}

// deltaNet records a gated delta net: o.Weight is A, o.Weight2 is Dt.
func (r *run) deltaNet(o *arch.Op, layer int, fade uint64) error {
	h, s := r.e.Hyper, &r.e.Plan.Scratch
	_, bias, err := r.tensor(o.Weight2)
	if err != nil {
		return err
	}
	d, gates := &h.Net, r.width(o.B)
	a := shaders.GatedDeltaNetArgs{
		X: r.value(o.A), Beta: r.value(o.B), Alpha: r.value(arch.Alpha), A: fade, Dt: bias, Dst: r.value(o.Dst),
		States: r.addr(s.States), Seq: r.addr(s.Seq), Pos: r.addr(s.Pos),
		Rows: uint32(len(r.rows)), KeyHeads: uint32(d.KeyHeads), Heads: uint32(d.Heads), Head: uint32(d.Head), XStride: r.width(o.A), DstStride: r.width(o.Dst),
		GateStride: gates, Group: uint32(d.Heads), Sequences: uint32(r.sequenceCount), StateOff: uint32(r.stateOff(layer) + h.ConvBytes()),
	}
	if d.Tiled {
		a.Tiled = 1
	}
	if d.Together {
		a.Alpha, a.Group = a.Beta, uint32(d.Heads/d.KeyHeads)
		a.Jump, a.AlphaOff = 2*a.Group, a.Group
	}
	return r.rec.GatedDeltaNet(a)
}
