package record

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/submit"
)

// Choice says by which variant an operation of a model is recorded for rows of one role, and why.
type Choice struct {
	What    string        // names the operation: its weights, such as "attn_q, attn_k", or its kind
	Role    kernels.Role  // role of the rows
	Layers  int           // how many layers have this operation, with this result; 0: the operation comes after the layers
	Rule    *kernels.Rule // rule of the variant; nil: no variant computes the operation as one, and choices for its parts follow
	Passed  []Passed      // variants tried before Rule, which do not fit, in order
	Weights string        // types of the weights, separated by commas
}

// Passed is a variant that does not fit an operation.
type Passed struct {
	Rule *kernels.Rule // rule of the variant
	Why  string        // why it does not fit, as [kernels.Watch] says
}

// Explain lists the variants by which the operations of a planned model are recorded on a device: first for a prompt of the given number of rows,
// then for one row to decode. It builds no pipeline and reads no weights.
func Explain(m *pack.Model, h *arch.Hyper, p *plan.Plan, k *kernels.Kernels, rows int) ([]Choice, error) {
	e := explainer{pack: m, addresses: map[string]uint64{}, model: Model{Hyper: h, Scratch: &p.Scratch, KV: &p.KV, KVType: p.KV.Type, Base: 1 << 44}}
	for _, span := range []Rows{{N: rows, Role: kernels.Prompt, Longest: rows, OneRun: true}, {N: 1, Role: kernels.Decode, Longest: rows + 1, OneRun: true}} {
		if err := e.role(k, span); err != nil {
			return nil, err
		}
	}
	return e.list, nil
}

// explainer records a model's operations with a dry recorder and lists the variants that the recorder considered.
type explainer struct {
	pack      *pack.Model       // the model's tensors
	model     Model             // what a step's frames share, with a made-up address of the scratch memory
	addresses map[string]uint64 // made-up addresses of weights, by name
	frame     Frame             // records with a dry recorder
	what      string            // name of the operation being recorded, for Choice.What
	types     string            // types of the operation's weights, for Choice.Weights
	layer     bool              // the operation is in a layer, not after the layers
	list      []Choice          // the result
	lastLayer []int             // for each choice of list, the last layer counted in its Layers
	pending   Choice            // the choice being made: variants that do not fit the operation are added to its Passed
}

// role records, with a new dry recorder, all layers for rows of one role, and the head if the rows are to decode.
func (e *explainer) role(k *kernels.Kernels, rows Rows) error {
	e.frame = Frame{Model: &e.model, Commands: submit.NewDryCommands(), Rec: k.Dry(), Tensor: e.tensor, StepRows: StepRows{Spans: []Rows{rows}, N: rows.N}, Batch: Batch{Sequences: 1, MaxPages: 1}}
	f, of := &e.frame, e.model.Scratch
	f.Rec.Memory.Tiles, f.Rec.Memory.Q8, f.Rec.Memory.Parts, f.Rec.Memory.Counters = f.Memory(of.Halves), f.Memory(of.Q8), f.Memory(of.Parts), f.Memory(of.Counters)
	f.Rec.Memory.Grids = f.Memory(of.Grids)
	f.Rec.Watch.Considered = e.considered
	f.SetRows(rows)
	h := e.model.Hyper
	if err := e.outer(h.Input(e.pack.Has), f.Op); err != nil {
		return err
	}
	for l := range h.BlockCount {
		f.Layer, e.layer = l, true
		for _, o := range arch.Fuse(h.Layer(l, e.pack.Has)) {
			if err := e.op(&o); err != nil {
				return fmt.Errorf("layer %d: %w", l, err)
			}
		}
	}
	return e.head(rows)
}

// op records one operation of a layer, also of the kinds that [Frame.Op] leaves to the caller.
func (e *explainer) op(o *arch.Op) error {
	f := &e.frame
	switch o.Kind {
	case arch.KeepLogitRows:
		return nil
	case arch.Experts:
		x := e.model.Hyper.Experts
		f.Experts = ExpertTable{Address: f.At(e.model.Scratch.ExpertTable), Last: x.Count}
		e.name(o)
		if err := f.LayerExperts(o, modelTensors{e.pack}); err != nil {
			return err
		}
	default:
		e.name(o)
		if err := f.Op(o); err != nil {
			return err
		}
	}
	return f.Rec.Finish()
}

// head records the output norm, the product that computes logits, and argmax, for rows to decode; nothing for others. Of an encoder it records what makes hidden states.
func (e *explainer) head(rows Rows) error {
	f, h := &e.frame, e.model.Hyper
	if rows.Role != kernels.Decode { // logits are made of rows to decode alone
		return nil
	}
	if err := e.outer(h.Output(e.pack.Has), func(o *arch.Op) error { return f.Output([]arch.Op{*o}, 1) }); err != nil || h.Encoder {
		return err
	}
	t, at, err := e.tensor(h.Head())
	if err != nil {
		return err
	}
	e.what, e.types = strings.TrimSuffix(h.Head(), ".weight"), t.Type.String()
	if err := f.HeadPiece(t.Type, at, 0, int64(h.VocabSize), 1); err != nil {
		return err
	}
	if err := e.outer(h.LogitOps(e.pack.Has), func(o *arch.Op) error { return f.LogitOps([]arch.Op{*o}, 1) }); err != nil {
		return err
	}
	e.what, e.types = "argmax", ""
	return f.Argmax(1)
}

// outer records operations before or after the layers, each by do.
func (e *explainer) outer(ops []arch.Op, do func(o *arch.Op) error) error {
	e.layer = false
	for i := range ops {
		e.name(&ops[i])
		if err := do(&ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// modelTensors is a [Tensors] that finds tensors in the whole model, not in a unit. That is enough to explain choices: they depend only on the
// types and shapes of an expert's tensors, the same for all experts of a layer.
type modelTensors struct{ *pack.Model }

// Tensor finds a tensor by name.
func (s modelTensors) Tensor(name string) (*pack.Tensor, bool) {
	t, _, ok := s.Model.Tensor(name)
	return t, ok
}

// tensor is [Frame.Tensor]: it finds a weight and makes up an address for it, the same each time.
func (e *explainer) tensor(name string) (*pack.Tensor, uint64, error) {
	t, _, ok := e.pack.Tensor(name)
	if !ok {
		return nil, 0, fmt.Errorf("tensor %q is missing", name)
	}
	if e.addresses[name] == 0 {
		e.addresses[name] = uint64(1+len(e.addresses)) << 45
	}
	return t, e.addresses[name], nil
}

// name sets e.what and e.types for the operation that is recorded next.
func (e *explainer) name(o *arch.Op) {
	var names, types []string
	for _, w := range o.Weights() {
		if t, _, ok := e.pack.Tensor(w); ok && len(t.Shape) > 1 && !slices.Contains(types, t.Type.String()) {
			types = append(types, t.Type.String())
		}
		w = strings.TrimSuffix(w, ".weight")
		if parts := strings.SplitN(w, ".", 3); len(parts) == 3 && parts[0] == "blk" {
			w = parts[2]
		}
		if !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	switch {
	case o.Kind == arch.Attention:
		names = []string{"attention"}
	case len(names) > 0:
	case o.Kind == arch.RopedAppend:
		names = []string{"rope"}
	case o.Kind == arch.SwiGLU:
		names = []string{"swiglu"}
	case o.Kind == arch.GeGLU:
		names = []string{"geglu"}
	case o.Kind == arch.GeGLUErf:
		names = []string{"geglu_erf"}
	case o.Kind == arch.RMSNorm:
		names = []string{"norm"}
	case o.Kind == arch.Route:
		names = []string{"top-k"}
	}
	e.what, e.types = strings.Join(names, ", "), strings.Join(types, ", ")
}

// considered is the callback [kernels.Watch].Considered. It collects variants that do not fit. For one that fits, or a nil rule if none does, it
// adds a choice to the list.
func (e *explainer) considered(rule *kernels.Rule, why string) {
	c := &e.pending
	if rule != nil && why != "" {
		c.Passed = append(c.Passed, Passed{rule, why})
		return
	}
	c.What, c.Weights, c.Role, c.Rule = e.what, e.types, e.frame.Rows.Role, rule
	e.add(*c)
	*c = Choice{}
}

// add adds c to the list, or counts the current layer in an equal choice, once: the recorder may consider an operation twice.
func (e *explainer) add(c Choice) {
	if e.layer {
		c.Layers = 1
	}
	for i := range e.list {
		old := &e.list[i]
		if old.What == c.What && old.Weights == c.Weights && old.Role == c.Role && old.Rule == c.Rule && slices.Equal(old.Passed, c.Passed) {
			if e.layer && e.lastLayer[i] != e.frame.Layer {
				old.Layers++
				e.lastLayer[i] = e.frame.Layer
			}
			return
		}
	}
	e.list = append(e.list, c)
	e.lastLayer = append(e.lastLayer, e.frame.Layer)
}
