package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// layerKind says in which layers a tensor must be if one of them has it: those with the same layerKind for the tensor's name, see [LayerShape.kindOf]. An FFN and what
// comes before it are compared apart, because layers with and without experts may have the same attention. Fields that do not concern the tensor are zero.
type layerKind struct {
	ffn     bool // the tensor belongs to the FFN or the mixture of experts
	experts bool // with ffn: the layer has experts
	cache   bool // without ffn: LayerShape.Cache
	state   bool // without ffn: LayerShape.State
	roped   bool // without ffn: rope rotates queries and keys
	mask    int  // without ffn: LayerShape.Mask
}

// layerTensors is the tensors of the file that the operations of a layer read.
type layerTensors struct {
	layer int
	names map[string]layerKind // by the tensor's name without the layer's prefix
}

// tensorsOf is the tensors of the file that ops of layer l read.
func (b *binding) tensorsOf(l int, ops []Op) layerTensors {
	s := &b.h.Layers[l]
	t := layerTensors{layer: l, names: map[string]layerKind{}}
	for _, name := range weightsOf(ops) {
		if b.m.Has(name) && !strings.HasSuffix(name, ".scale") { // only matrices of some types have scales
			name = strings.TrimPrefix(name, fmt.Sprintf("blk.%d.", l))
			t.names[name] = s.kindOf(name)
		}
	}
	return t
}

// kindOf is the kind of the layer for the tensor of the given name, which is without the layer's prefix.
func (s *LayerShape) kindOf(name string) layerKind {
	if strings.HasPrefix(name, "ffn_") || strings.HasPrefix(name, "exp_") {
		return layerKind{ffn: true, experts: s.Experts}
	}
	kind := layerKind{cache: s.Cache, state: s.State, roped: s.Rope != NoRope, mask: s.Mask}
	if strings.HasSuffix(name, ".bias") { // layers have the same biases whatever their masks
		kind.mask = 0
	}
	return kind
}

// checkUniform refuses a model of which a layer lacks tensors that other layers of its kind have: many tensors, such as biases, are read where a file has them, so a
// file that lost one of them would give other answers.
func (b *binding) checkUniform(layers [][]Op, tensors []layerTensors) error {
	type tensor struct {
		name string
		kind layerKind
	}
	var all []tensor // those that some layer has
	for _, t := range tensors {
		for _, name := range slices.Sorted(maps.Keys(t.names)) {
			if w := (tensor{name, t.names[name]}); !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	for _, t := range tensors {
		s := &b.h.Layers[t.layer]
		for _, w := range all {
			if b.h.Encoder && t.layer == 0 && w.name == "attn_norm.weight" { // ModernBERT's first layer reads embeddings, which are normalised already
				continue
			}
			if _, has := t.names[w.name]; !has && s.kindOf(w.name) == w.kind && (!w.kind.ffn || s.FeedForwardLength > 0 || s.Experts) {
				missing := fmt.Sprintf("blk.%d.%s", t.layer, w.name)
				return fmt.Errorf("bind %s: tensor %q is missing, which other layers of its kind have%s", b.m.Path, missing, b.unreadBeside(missing))
			}
		}
		if err := checkTogether(b.m.Path, t, "attn_q.bias", "attn_k.bias", "attn_v.bias"); err != nil {
			return err
		}
		if err := checkTogether(b.m.Path, t, "ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias"); err != nil {
			return err
		}
	}
	return b.checkNormBiases(layers)
}

// checkTogether refuses a layer that has some of the biases and not others, if it has the weights of all. path names the file in errors.
func checkTogether(path string, t layerTensors, biases ...string) error {
	var with, without []string
	for _, bias := range biases {
		_, hasWeight := t.names[strings.TrimSuffix(bias, ".bias")+".weight"]
		_, hasBias := t.names[bias]
		switch {
		case !hasWeight:
			return nil
		case hasBias:
			with = append(with, bias)
		default:
			without = append(without, bias)
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return nil
	}
	return fmt.Errorf("bind %s: tensor \"blk.%d.%s\" is missing, and the layer has %s", path, t.layer, without[0], with[0])
}

// checkNormBiases refuses a model of which some layer norms have biases and others don't.
func (b *binding) checkNormBiases(layers [][]Op) error {
	h, m := b.h, b.m
	ops := slices.Concat(h.Input(m.Has), h.Output(m.Has))
	ops = append(ops, slices.Concat(layers...)...)
	var with, without []string
	for i := range ops {
		switch o := &ops[i]; {
		case o.Kind != LayerNorm || o.Weight == "" || o.PerHead:
		case o.Weight2 == "":
			without = append(without, o.Weight)
		default:
			with = append(with, o.Weight2)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		bias := strings.TrimSuffix(without[0], ".weight") + ".bias"
		return fmt.Errorf("bind %s: tensor %q is missing, which other layer norms have, such as %s", m.Path, bias, with[0])
	}
	return nil
}
