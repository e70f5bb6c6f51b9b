package arch

import (
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
)

// Some files have scales beside weights, because the weights' type, such as NVFP4, does not reach their magnitude: the product with NAME.weight is multiplied by NAME.scale,
// which is one number, or one number for each expert. Biases are added afterwards.

// OutputScale is the scale of [Output].
const OutputScale = "output.scale"

// scaledStacks are the names of stacks of experts that may have scales.
var scaledStacks = []string{"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}

// scaled are the names of a layer's other weights that may have scales, each for all its rows.
var scaled = []string{
	"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "attn_gate", "ffn_gate", "ffn_up", "ffn_down", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp",
	"ssm_in", "ssm_out", "ssm_alpha", "ssm_beta",
}

// scaleOf is the name of the scale of the layer's matrix NAME.weight; "": it has none.
func scaleOf(p *program, weight string) string {
	if !slices.Contains(scaled, weight) {
		return ""
	}
	return optional(p, weight+".scale")
}

// scaledExpert returns the product of a and the weights of each pair's own expert and, if the file has scales, its product with the expert's scale: they belong in the Ops
// of Experts. It also adds the operation that gathers the scales to `to`. It runs before the experts: scales are in the layer's unit, which may leave VRAM before the experts arrive.
func scaledExpert(p *program, dst, a Value, stack string, to Value) []Op {
	product := perExpert(p, dst, a, stack)
	scale := p.prefix + stack + ".scale"
	if !p.has(scale) || p.hasWeight("ffn_gate_up_exps") { // whose halves' scale is not defined
		return []Op{product}
	}
	p.add(Op{Kind: PairRows, Dst: to, A: Chosen, Weight: scale})
	return []Op{product, {Kind: Mul, Dst: dst, A: dst, B: to}}
}

// addScaledRouter is [addRouter]; the Route that it returns also multiplies the weight of a chosen expert by the scale of the expert's output, if the file has
// such scales. Biases of the output would be multiplied too, so the scales of experts with biases are not read.
func addScaledRouter(p *program, a Value) Op {
	o := addRouter(p, a)
	if scale := p.prefix + "ffn_down_exps.scale"; p.has(scale) && !p.h.Experts.Biased {
		o.Weight2 = scale
	}
	return o
}

// isInputScale reports whether a tensor is NAME.input_scale beside a known NAME.weight: one number, or one for each expert, by which the file's author quantised activations.
// leat does not need it: its kernels quantise activations with a scale for each 32 values, or not at all.
func (b *binding) isInputScale(t *pack.Tensor) bool {
	name, ok := strings.CutSuffix(t.Name, ".input_scale")
	if !ok || !b.known[name+".weight"] || t.Type != gguf.F32 || len(t.Shape) != 1 {
		return false
	}
	if _, rest, layer := strings.Cut(strings.TrimPrefix(name, "blk."), "."); layer {
		name = rest
	}
	if slices.Contains(scaledStacks, name) {
		return t.Shape[0] == int64(b.h.Experts.Count)
	}
	return t.Shape[0] == 1 && (name == "output" || slices.Contains(scaled, name))
}
