package arch

import "math"

// LayerInput is the hyperparameters of the inputs that layers have of their own (Gemma 3n and 4): beside the residual stream, each reads an embedding of the row's token. Length 0: the
// model has none.
type LayerInput struct {
	Length int // Dp: size of a layer's input
	Layers int // layers that the file has inputs for, also in a [Hyper.View]
}

// Names of the tensors outside the layers that layers' inputs are computed from.
const (
	layerEmbd    = "per_layer_token_embd"
	layerProduct = "per_layer_model_proj"
	layerNorm    = "per_layer_proj_norm"
)

// Table is a matrix of the file with a row for each token. A step reads only the rows of its tokens, so a table stays on the host.
type Table struct {
	Name string // name of the tensor
	Dst  Value  // activation that the rows of the step's tokens are decoded to
}

// MaxTables is the most tables that a model has.
const MaxTables = 2

// Tables lists the model's tables: token_embd is the first.
func Tables(h *Hyper) []Table {
	tables := []Table{{TokenEmbd, X}}
	if h.LayerInput.Length > 0 {
		tables = append(tables, Table{layerEmbd + ".weight", LayerInputs})
	}
	return tables
}

// readLayerInput reads the key of layers' inputs.
func readLayerInput(k *keys, h *Hyper) {
	if n := k.int("embedding_length_per_layer_input", 0); n > 0 {
		h.LayerInput = LayerInput{Length: n, Layers: h.BlockCount}
	}
}

// makeLayerInputs adds the operations that make the inputs of all layers, if the model has them: LayerInputs = (rms(per_layer_model_proj · X / √D) + √Dp * e) / √2. e is the row's
// embedding in [Table] per_layer_token_embd, which LayerInputs holds before.
func makeLayerInputs(p *program) {
	in := &p.h.LayerInput
	if in.Length == 0 {
		return
	}
	p.linear(LayerProducts, X, layerProduct)
	p.add(Op{Kind: Scale, Dst: LayerProducts, A: LayerProducts, Factor: float32(1 / math.Sqrt(float64(p.width(X))))})
	p.headRMS(LayerProducts, layerNorm, in.Layers, in.Length)
	p.add(Op{Kind: Add, Dst: LayerInputs, A: LayerProducts, B: LayerInputs, Factor: float32(math.Sqrt(float64(in.Length)))})
	p.add(Op{Kind: Scale, Dst: LayerInputs, A: LayerInputs, Factor: float32(math.Sqrt2 / 2)})
}

// ownInput adds the operations of the layer's own input: dst = rms(proj · (gelu(inp_gate · a) * OwnInput)). Layer l of a view reads the part l % Layers.
func ownInput(p *program, dst, a Value) {
	in := &p.h.LayerInput
	p.linear(LayerGate, a, "inp_gate")
	p.add(Op{Kind: HeadCopy, Dst: OwnInput, A: LayerInputs, Heads: 1, Cols: in.Length, OffA: p.l % in.Layers * in.Length})
	p.add(Op{Kind: GeGLU, Dst: LayerGate, A: LayerGate, B: OwnInput})
	p.linear(dst, LayerGate, "proj")
	p.rms(dst, dst, "post_norm")
}

// width is [Hyper.Width] of the values from LayerInputs to LayerGate.
func (in *LayerInput) width(v Value) int {
	if v == LayerInputs || v == LayerProducts {
		return in.Layers * in.Length
	}
	return in.Length
}
