package record

import (
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/shaders"
)

// stateOff is the byte offset of a part of the layer's state in the state of a sequence.
func (f *Frame) stateOff(part int) uint32 { return uint32(f.KV.Layers[f.Layer].State[part]) }

// ssmConv records the causal convolution over the rows of each sequence, which reads and updates the sequence's state. Tensor o.Weight2 is its bias.
func ssmConv(f *Frame, o *arch.Op) error {
	w, b, _, err := weights(f, o)
	if err != nil {
		return err
	}
	s, cols, before := f.Scratch, f.width(o.A), uint32(4*o.Off*(o.Cols-1)) // bytes of the state of the convolutions before
	pos, seq := f.positions()
	return kernels.SSMConv(f.Rec, shaders.SSMConvArgs{
		X: f.value(o.A), W: w, B: b, Dst: f.value(o.Dst) + 4*uint64(o.Off), States: f.At(s.States), Seq: seq, Pos: pos,
		Rows: f.n(), Cols: cols, Taps: uint32(o.Cols), XStride: cols, DstStride: f.width(o.Dst),
		Sequences: uint32(f.Batch.Sequences), StateOff: f.stateOff(arch.ConvPart) + before, Linear: flag(o.Linear),
	})
}

// gatedDeltaNet records a gated delta net, which reads and updates each sequence's state. o.Weight names the tensor ssm_a, which sets how fast each
// head's state fades; o.Weight2 names ssm_dt, a bias.
func gatedDeltaNet(f *Frame, o *arch.Op) error {
	fade, bias, _, err := weights(f, o)
	if err != nil {
		return err
	}
	h, s := f.Hyper, f.Scratch
	pos, seq := f.positions()
	d, gates := &h.Delta, f.width(o.B)
	a := shaders.GatedDeltaNetArgs{
		X: f.value(o.A), Beta: f.value(o.B), Alpha: f.value(arch.Alpha), A: fade, Dt: bias, Dst: f.value(o.Dst),
		States: f.At(s.States), Seq: seq, Pos: pos,
		Rows: f.n(), KeyHeads: uint32(d.KeyHeads), Heads: uint32(d.Heads), Head: uint32(d.HeadLength), XStride: f.width(o.A), DstStride: f.width(o.Dst),
		Tiled: flag(d.Tiled), GateStride: gates, Group: uint32(d.Heads), ByChannel: flag(d.ByChannel), Sequences: uint32(f.Batch.Sequences), StateOff: f.stateOff(arch.ScanPart),
	}
	if d.JoinedBetaAlpha {
		a.Alpha, a.Group = a.Beta, uint32(d.Heads/d.KeyHeads)
		a.Jump, a.AlphaOff = 2*a.Group, a.Group
	}
	return kernels.GatedDeltaNet(f.Rec, a)
}

// selectiveScan records Mamba 1's scan, which reads and updates each sequence's state.
func selectiveScan(f *Frame, o *arch.Op) error {
	fade, skip, bias, err := weights(f, o)
	if err != nil {
		return err
	}
	pos, seq := f.positions()
	return kernels.SSMScan(f.Rec, shaders.SSMScanArgs{
		X: f.value(o.A), Delta: f.value(arch.SSMDelta), BC: f.value(o.B), A: fade, D: skip, Dt: bias, Dst: f.value(o.Dst), States: f.At(f.Scratch.States), Seq: seq, Pos: pos,
		Rows: f.n(), Channels: f.width(o.Dst), State: uint32(f.Hyper.Mamba.State), XStride: f.width(o.A), DeltaStride: f.width(arch.SSMDelta), BCStride: f.width(o.B), DstStride: f.width(o.Dst),
		Sequences: uint32(f.Batch.Sequences), StateOff: f.stateOff(arch.ScanPart),
	})
}

// stateSpace records Mamba 2's scan, which reads and updates each sequence's state.
func stateSpace(f *Frame, o *arch.Op) error {
	fade, skip, bias, err := weights(f, o)
	if err != nil {
		return err
	}
	m := &f.Hyper.Mamba
	pos, seq := f.positions()
	return kernels.SSDScan(f.Rec, shaders.SSDScanArgs{
		X: f.value(o.A), Delta: f.value(o.B), A: fade, D: skip, Dt: bias, Dst: f.value(o.Dst), States: f.At(f.Scratch.States), Seq: seq, Pos: pos,
		Rows: f.n(), Heads: uint32(m.Heads), Head: uint32(m.Inner / m.Heads), Groups: uint32(m.Groups), State: uint32(m.State),
		XStride: f.width(o.A), DeltaStride: f.width(o.B), DstStride: f.width(o.Dst), Sequences: uint32(f.Batch.Sequences), StateOff: f.stateOff(arch.ScanPart), DeltaMin: o.DeltaMin,
	})
}
