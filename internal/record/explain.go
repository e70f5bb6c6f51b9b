package record

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/submit"
)

// Choice is the variant by which operations of a model are recorded for rows of one role, and why.
type Choice struct {
	What    string        // the operation: its weights, or its kind
	Role    kernels.Role  // of the rows
	Layers  int           // that have such operations, with weights of the same types; 0: it is after the layers
	Rule    *kernels.Rule // nil: no variant computes it as one, so its parts follow
	Passed  []Passed      // the variants before it that don't fit, in order
	Weights string        // types of the weights
}

// Passed is a variant that was not taken.
type Passed struct {
	Rule *kernels.Rule
	Why  string
}

// Explain says by which variants the operations of a planned model are recorded on a device: for a prompt of so many rows, then for one row
// to decode. It builds no kernel, and reads no weights.
func Explain(m *pack.Model, h *arch.Hyper, p *plan.Plan, kv gguf.Type, k *kernels.Kernels, rows int) ([]Choice, error) {
	e := explainer{pack: m, at: map[string]uint64{}, model: Model{Hyper: h, Scratch: &p.Scratch, KV: &p.KV, KVType: kv, Base: 1 << 44}}
	for _, span := range []Rows{{N: rows, Role: kernels.Prompt, Longest: rows, OneRun: true}, {N: 1, Role: kernels.Decode, Longest: rows + 1, OneRun: true}} {
		if err := e.role(k, span); err != nil {
			return nil, err
		}
	}
	return e.list, nil
}

// explainer records a model's operations with a recorder that dispatches nothing, and notes what it considered.
type explainer struct {
	pack  *pack.Model
	model Model
	at    map[string]uint64 // made-up addresses of weights
	frame Frame
	what  string
	types string
	layer bool
	list  []Choice
	last  []int  // of each choice, the layer that was counted last
	open  Choice // that is being made
}

// role records all layers and the head for rows of one role.
func (e *explainer) role(k *kernels.Kernels, rows Rows) error {
	e.frame = Frame{Model: &e.model, Commands: submit.Uncut(), Rec: k.Dry(), Tensor: e.tensor, AtHand: Hand{Spans: []Rows{rows}, N: rows.N}, Batch: Batch{Sequences: 1, MaxPages: 1}}
	f, of := &e.frame, e.model.Scratch
	f.Rec.Scratch, f.Rec.Q8, f.Rec.Parts, f.Rec.Counters = f.Memory(of.Halves), f.Memory(of.Q8), f.Memory(of.Parts), f.Memory(of.Counts)
	f.Rec.Considered = e.considered
	f.Take(rows)
	h := e.model.Hyper
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

func (e *explainer) op(o *arch.Op) error {
	f := &e.frame
	switch o.Kind {
	case arch.KeepAsked:
		return nil
	case arch.Experts:
		x := e.model.Hyper.Experts
		f.Experts = ExpertTable{Address: f.At(e.model.Scratch.Table), Last: x.Count}
		e.name(o)
		if err := f.LayerExperts(o, sample{e.pack}); err != nil {
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

// head records the norm and the product that make logits, and the choice of the likeliest token.
func (e *explainer) head(rows Rows) error {
	f, h := &e.frame, e.model.Hyper
	if rows.Role != kernels.Decode { // logits are made of rows to decode alone
		return nil
	}
	e.layer = false
	t, at, err := e.tensor(h.Head())
	if err != nil {
		return err
	}
	_, norm, err := e.tensor(arch.OutputNorm)
	if err != nil {
		return err
	}
	e.what, e.types = "output_norm", ""
	if err := f.HeadNorm(norm, 1); err != nil {
		return err
	}
	e.what, e.types = strings.TrimSuffix(h.Head(), ".weight"), t.Type.String()
	if err := f.HeadPiece(t.Type, at, 0, int64(h.VocabSize), 1); err != nil {
		return err
	}
	e.what, e.types = "argmax", ""
	return f.Argmax(1)
}

// sample finds an expert's tensors in the model.
type sample struct{ *pack.Model }

func (s sample) Tensor(name string) (*pack.Tensor, bool) {
	t, _, ok := s.Model.Tensor(name)
	return t, ok
}

// tensor finds a weight, and gives it an address of its own.
func (e *explainer) tensor(name string) (*pack.Tensor, uint64, error) {
	t, _, ok := e.pack.Tensor(name)
	if !ok {
		return nil, 0, fmt.Errorf("tensor %q is missing", name)
	}
	if e.at[name] == 0 {
		e.at[name] = uint64(1+len(e.at)) << 45
	}
	return t, e.at[name], nil
}

// name says what is recorded next.
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
		names = append(names, w)
	}
	switch {
	case o.Kind == arch.Attention:
		names = []string{"attention"}
	case len(names) > 0:
	case o.Kind == arch.TurnedAppend:
		names = []string{"rope"}
	case o.Kind == arch.SwiGLU:
		names = []string{"swiglu"}
	case o.Kind == arch.Route:
		names = []string{"top-k"}
	}
	e.what, e.types = strings.Join(names, ", "), strings.Join(types, ", ")
}

// considered notes that a variant fits, or does not.
func (e *explainer) considered(rule *kernels.Rule, why string) {
	c := &e.open
	if rule != nil && why != "" {
		c.Passed = append(c.Passed, Passed{rule, why})
		return
	}
	c.What, c.Weights, c.Role, c.Rule = e.what, e.types, e.frame.Rows.Role, rule
	e.put(*c)
	*c = Choice{}
}

// put adds a choice to the list, or a layer to one like it: an operation may be asked about twice before it is recorded.
func (e *explainer) put(c Choice) {
	if e.layer {
		c.Layers = 1
	}
	for i := range e.list {
		old := &e.list[i]
		if old.What == c.What && old.Weights == c.Weights && old.Role == c.Role && old.Rule == c.Rule && slices.Equal(old.Passed, c.Passed) {
			if e.layer && e.last[i] != e.frame.Layer {
				old.Layers++
				e.last[i] = e.frame.Layer
			}
			return
		}
	}
	e.list = append(e.list, c)
	e.last = append(e.last, e.frame.Layer)
}
