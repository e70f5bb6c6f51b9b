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
	Hyper   *arch.Hyper
	Scratch *plan.Scratch
	KV      *plan.KV
	KVType  gguf.Type
	Base    uint64 // device address of the scratch
}

// Frame is what one recording of an operation depends on.
type Frame struct {
	*Model
	Commands *submit.Commands  // cuts what would run too long
	Rec      *kernels.Recorder // records into them
	Layer    int               // of the model, that is recorded
	Rows     Rows              // that it is recorded for
	AtHand   Hand              // the rows that the step goes on with
	Batch    Batch

	// Tensor finds a weight that the layer at hand may read, and its device address.
	Tensor func(name string) (*pack.Tensor, uint64, error)

	Experts ExpertTable
	Absent  float64 // share of the layer's pairs of rows and experts that the recording leaves out
	Lookup  Lookup
}

// Hand is the rows that a step goes on with: all, or from [arch.KeepAsked] of the last layer on those that want logits.
type Hand struct {
	Spans []Rows // in order
	N     int    // rows
	Kept  bool   // they are those that want logits, gathered
}

// Rows are rows that an operation is recorded for together: a run of the rows at hand with one role, of prompts with one sequence.
type Rows struct {
	From, N int // of the rows at hand
	Role    kernels.Role
	Longest int  // positions that the row with most of them attends to
	OneRun  bool // they are of one sequence, at ascending positions
}

// Batch is what holds for all rows of a step.
type Batch struct {
	Sequences int  // distinct ones
	MaxPages  int  // row length of the page table
	Keeps     bool // from the last layer's [arch.KeepAsked] on there are none but those that want logits
}

// ExpertTable says where the device finds the addresses of the layer's expert matrices: (matrices, experts) uint64, in the order of the
// products among the operations of [arch.Experts].
type ExpertTable struct {
	Address uint64
	First   int // experts First up to Last, not Last itself, have addresses
	Last    int
}

// Lookup is a table in which a router looks up by itself whether the experts it chose are in VRAM.
type Lookup struct {
	Layer   int    // whose router does
	Address uint64 // 0: none does
}

// kinds has the function that records an operation, by its kind. [arch.Experts] and [arch.KeepAsked] have none: they are for who runs the
// step.
var kinds map[arch.Kind]func(*Frame, *arch.Op) error

func init() { // fused operations record others: a literal would refer to itself
	kinds = map[arch.Kind]func(*Frame, *arch.Op) error{
		arch.RMSNorm: rmsNorm, arch.MulMat: mulMat, arch.Bias: bias, arch.RopeTurn: ropeTurn, arch.KVAppend: kvAppend,
		arch.Attention: attention, arch.SwiGLU: swiGLU, arch.Add: add,
		arch.Route: route, arch.SumExperts: sumExperts, arch.PairRows: pairRows, arch.SigmoidMul: sigmoidMul,
		arch.SSMConv: ssmConv, arch.GatedDeltaNet: gatedDeltaNet, arch.HeadMulMat: headMulMat, arch.HeadCopy: headCopy,
		arch.Siblings: orEach(siblings), arch.Gated: orEach(gated), arch.Added: orEach(added), arch.TurnedProducts: orEach(turnedProducts),
		arch.TurnedAppend: orEach(turnedAppend), arch.NormedRoute: orEach(normedRoute), arch.NormedAppend: orEach(normedAppend),
	}
}

// Op records one operation.
func (f *Frame) Op(o *arch.Op) error {
	do, ok := kinds[o.Kind]
	if !ok {
		return fmt.Errorf("operation %d has no kernel", o.Kind)
	}
	return do(f, o)
}

// orEach records an operation that stands for others as few dispatches where the device can, else these one after another.
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

// At is the device address of a region of the scratch.
func (f *Frame) At(g plan.Region) uint64 { return f.Base + uint64(g.Off) }

// Memory is a region of the scratch as the recorder takes it.
func (f *Frame) Memory(g plan.Region) kernels.Scratch {
	return kernels.Scratch{Address: f.At(g), Bytes: g.Bytes}
}

// Take has what follows recorded for a span of the rows at hand.
func (f *Frame) Take(rows Rows) {
	f.Rows = rows
	f.Rec.Role, f.Rec.Run = rows.Role, rows.OneRun
}

// base is where the rows at hand have an activation, the first of them.
func (f *Frame) base(v arch.Value) uint64 {
	if f.AtHand.Kept {
		return f.At(f.Scratch.Kept[v])
	}
	return f.At(f.Scratch.Values[v])
}

// value is where the rows that are recorded for have an activation.
func (f *Frame) value(v arch.Value) uint64 {
	return f.base(v) + 4*uint64(f.Rows.From)*uint64(f.width(v))
}

// positions is where the positions of the rows that are recorded for are, and the indices of their sequences.
func (f *Frame) positions() (pos, seq uint64) {
	pos, seq = f.At(f.Scratch.Pos), f.At(f.Scratch.Seq)
	if f.AtHand.Kept {
		pos, seq = f.At(f.Scratch.KeptPos), f.At(f.Scratch.KeptSeq)
	}
	return pos + 4*uint64(f.Rows.From), seq + 4*uint64(f.Rows.From)
}

// angles is where the cosines and sines of their positions are.
func (f *Frame) angles() uint64 {
	return f.At(f.Scratch.CosSin) + 4*uint64(f.Rows.From)*uint64(f.Hyper.Rope.Dim)
}

func (f *Frame) width(v arch.Value) uint32 { return uint32(f.Hyper.Width(v)) }

// n is the number of rows that are recorded for.
func (f *Frame) n() uint32 { return uint32(f.Rows.N) }

// cacheOff is where the layer's part of a page of the KV cache begins.
func (f *Frame) cacheOff() uint32 {
	return uint32(int64(f.Hyper.CacheLayer(f.Layer)) * f.KV.LayerBytes)
}

// weight finds an operation's first weight; nil and 0 where it has none.
func (f *Frame) weight(o *arch.Op) (*pack.Tensor, uint64, error) {
	if o.Weight == "" {
		return nil, 0, nil
	}
	return f.Tensor(o.Weight)
}

// SetAbsent says which share of the layer's pairs of rows and experts is left out by what f records next, for estimates of its cost.
func SetAbsent(f *Frame, share float64) { f.Absent, f.Rec.Absent = share, share }
