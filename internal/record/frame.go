package record

import (
	"fmt"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/submit"
)

// Model is what all recordings of a model share.
type Model struct {
	Hyper   *arch.Hyper   // hyperparameters
	Scratch *plan.Scratch // regions of the scratch memory, by offset
	KV      *plan.KV      // layout of a page of the KV cache
	KVType  gguf.Type     // type of the KV cache
	Base    uint64        // device address of the scratch memory
}

// Frame is the context in which operations are recorded: the model, the layer, the rows, and the recorder.
type Frame struct {
	*Model
	Commands *submit.Commands  // the step's command buffers, which Rec records into; its ByRows splits work that would run too long
	Rec      *kernels.Recorder // records dispatches into the open command buffer of Commands
	Layer    int               // index of the layer whose operations are recorded
	Rows     Rows              // rows that operations are recorded for, see [Frame.SetRows]
	StepRows StepRows          // all rows that the step computes at this point: Rows is a span of them
	Batch    Batch             // sizes that hold for the whole step

	// Tensor finds a weight of the layer, or one after the layers, and its device address.
	Tensor func(name string) (*pack.Tensor, uint64, error)

	Experts ExpertTable // where the layer's experts are, and which of them are recorded
	Absent  float64     // fraction, 0 to 1, of the layer's (row, expert) pairs that are left to other waves, for cost estimates; see SetAbsent
	Lookup  Lookup      // layer whose router's kernel also looks up whether the experts that it chose are in VRAM
}

// StepRows is the rows that a step computes at some point: all of its rows, or from [arch.KeepLogitRows] of the last layer on only those whose
// logits are needed.
type StepRows struct {
	Spans         []Rows // spans of rows that are recorded together, in order
	N             int    // number of rows in all spans
	OnlyLogitRows bool   // only the rows whose logits are needed, gathered by [Frame.GatherLogitRows]

	headRows bool // X of the rows whose logits are needed is gathered in Scratch.Head, for the operations after the layers
}

// Rows is a span of [StepRows] that operations are recorded for together. All its rows have one role; rows of prompts are of one sequence.
type Rows struct {
	From, N int          // index of the first row in [StepRows], and number of rows
	Role    kernels.Role // role of each row: prompt or decode
	Longest int          // largest number of positions that any of the rows attends to
	OneRun  bool         // all rows are of one sequence, at ascending positions: some attention kernels need that
}

// Batch has what holds for all rows of a step.
type Batch struct {
	Sequences     int  // number of distinct sequences
	MaxPages      int  // row length of the page table
	OnlyLogitRows bool // from [arch.KeepLogitRows] of the last layer on, the step computes only the rows whose logits are needed
}

// ExpertTable is a table in device memory with the addresses of the layer's expert matrices: (matrices, experts) uint64. Its matrices are in
// the order of the products in [arch.Experts].
type ExpertTable struct {
	Address uint64 // device address of the table
	First   int    // experts First up to Last, not Last itself, are recorded; one whose address is 0 is skipped on the device
	Last    int    // one past the last expert that is recorded
}

// Lookup names a layer, and a table in device memory that says which of the layer's experts are in VRAM. The kernel that chooses experts in that
// layer also looks up in the table whether all of them are.
type Lookup struct {
	Layer   int    // index of the layer
	Address uint64 // device address of the table; 0: no kernel looks up experts
}

// recorders has, by kind, the function that records an operation. [arch.Experts] and [arch.KeepLogitRows] have none: the caller that runs the step
// handles them.
var recorders map[arch.Kind]func(*Frame, *arch.Op) error

// init fills recorders: fused operations record others, so a literal would refer to itself.
func init() {
	recorders = map[arch.Kind]func(*Frame, *arch.Op) error{
		arch.RMSNorm: rmsNorm, arch.MulMat: mulMat, arch.Bias: bias, arch.RopeHeads: ropeHeads, arch.KVAppend: kvAppend,
		arch.Attention: attention, arch.LayerNorm: layerNorm, arch.SwiGLU: glu, arch.GeGLU: glu, arch.GeGLUErf: glu, arch.Act: act,
		arch.Add: add, arch.Mul: mul, arch.MulWeight: mulWeight, arch.Scale: scale, arch.ScaleRows: scaleRows, arch.AddRows: addRows, arch.ScaleLogits: scaleLogits,
		arch.Route: route, arch.SumExperts: sumExperts, arch.PairRows: pairRows, arch.PairScale: pairScale, arch.SigmoidMul: sigmoidMul,
		arch.SSMConv: ssmConv, arch.GatedDeltaNet: gatedDeltaNet, arch.SelectiveScan: selectiveScan, arch.StateSpace: stateSpace,
		arch.HeadMulMat: headMulMat, arch.HeadCopy: headCopy,
		arch.Siblings: orEach(siblings), arch.Gated: orEach(gated), arch.Added: orEach(added), arch.RopedProducts: orEach(ropedProducts),
		arch.RopedAppend: orEach(ropedAppend), arch.NormedRoute: orEach(normedRoute), arch.NormedRopedAppend: orEach(normedRopedAppend),
	}
}

// Op records one operation for the rows of [Frame.Rows]. A fused operation that no kernel computes is recorded as its parts.
func (f *Frame) Op(o *arch.Op) error {
	do, ok := recorders[o.Kind]
	if !ok {
		return fmt.Errorf("operation %d has no kernel", o.Kind)
	}
	return do(f, o)
}

// orEach returns a function that records a fused operation by calling fused, or if that returns done false, each operation of its Ops in turn.
func orEach(fused func(*Frame, *arch.Op) (done bool, err error)) func(*Frame, *arch.Op) error {
	return func(f *Frame, o *arch.Op) error {
		if done, err := fused(f, o); done || err != nil {
			return err
		}
		for i := range o.Ops {
			if err := f.Op(&o.Ops[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// At is the device address of a region of the scratch memory; the region may be empty.
func (f *Frame) At(g plan.Region) uint64 { return f.Base + uint64(g.Off) }

// Memory describes a region of the scratch memory by its device address and size, as fields of [kernels.Recorder] take it.
func (f *Frame) Memory(g plan.Region) kernels.Scratch {
	return kernels.Scratch{Address: f.At(g), Bytes: g.Bytes}
}

// SetRows makes f record the operations that follow for a span of [Frame.StepRows]. It also sets Role and Run of the recorder, because the choice
// of kernels depends on them.
func (f *Frame) SetRows(rows Rows) {
	f.Rows = rows
	f.Rec.Rows.Role, f.Rec.Rows.Run = rows.Role, rows.OneRun
}

// base is the device address of activation v, for the first row of [Frame.StepRows]. If StepRows has only the rows whose logits are needed, it
// is the address of their copy, which [Frame.GatherLogitRows] made.
func (f *Frame) base(v arch.Value) uint64 {
	switch {
	case v == arch.Hidden || v == arch.X && f.StepRows.headRows:
		return f.At(f.Scratch.Head)
	case v == arch.Logits:
		return f.At(f.Scratch.Logits)
	case f.StepRows.OnlyLogitRows:
		return f.At(f.Scratch.LogitValues[v])
	}
	return f.At(f.Scratch.Values[v])
}

// value is the device address of activation v, for the first row of [Frame.Rows].
func (f *Frame) value(v arch.Value) uint64 {
	return f.base(v) + 4*uint64(f.Rows.From)*uint64(f.width(v))
}

// positions returns two device addresses, for the first row of [Frame.Rows]: of its position and of the index of its sequence. Those of the other
// rows follow. Only operations that write to the KV cache or to states read them, which come before [arch.KeepLogitRows].
func (f *Frame) positions() (pos, seq uint64) {
	return f.At(f.Scratch.Pos) + 4*uint64(f.Rows.From), f.At(f.Scratch.Seq) + 4*uint64(f.Rows.From)
}

// ropeOf is the rope by which an operation rotates, and the device address of its cosines and sines at the rows' positions, from the first row of
// [Frame.Rows].
func ropeOf(f *Frame, o *arch.Op) (r *arch.Rope, angles uint64) {
	r = &f.Hyper.Ropes[o.Rope]
	return r, f.At(f.Scratch.CosSin[o.Rope]) + 4*uint64(f.Rows.From)*uint64(r.Dim)
}

// width is the number of values of an activation in a row.
func (f *Frame) width(v arch.Value) uint32 { return uint32(f.Hyper.Width(f.Layer, v)) }

// pairWidth is the number of values of an activation that a (row, expert) pair has; where the activation has no parts for pairs, those of a row.
func pairWidth(f *Frame, v arch.Value) uint32 { return uint32(f.Hyper.PairWidth(f.Layer, v)) }

// shape is what may differ from layer to layer.
func (f *Frame) shape() *arch.LayerShape { return &f.Hyper.Layers[f.Layer] }

// n is the number of rows of [Frame.Rows].
func (f *Frame) n() uint32 { return uint32(f.Rows.N) }

// cacheOff is the byte offset, in a page of the KV cache, of the keys and values of layer f.Layer.
func (f *Frame) cacheOff() uint32 {
	return uint32(f.KV.Layers[f.Layer].Off)
}

// weight finds an operation's first weight and the device address of the first row of it that the operation reads; nil and 0 if the operation has none.
func (f *Frame) weight(o *arch.Op) (*pack.Tensor, uint64, error) {
	if o.Weight == "" {
		return nil, 0, nil
	}
	t, at, err := f.Tensor(o.Weight)
	if err != nil || o.Row == 0 {
		return t, at, err
	}
	return t, at + RowOff(t, o.Row), nil
}

// RowOff is the offset of a row of a matrix, or of a value of a vector, in the tensor's memory.
func RowOff(t *pack.Tensor, row int) uint64 { return uint64(int64(row) * (t.Bytes / t.Shape[0])) }

// SetAbsent sets, in the frame and its recorder, the fraction, 0 to 1, of the layer's (row, expert) pairs that the operations recorded next do not
// compute. Only cost estimates use it.
func SetAbsent(f *Frame, share float64) { f.Absent, f.Rec.Rows.Absent = share, share }
