package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
)

// UnreadError says that a file has tensors that no operation of its architecture reads: leat's logits would not be
// those of the model.
type UnreadError struct {
	Path, Architecture string   // path and architecture of the file
	Names              []string // names of all such tensors, in the order of the units
	hint               string   // what is probably wrong with the file
}

// Error counts the tensors, and names the first of them.
func (e *UnreadError) Error() string {
	const first = 3
	names := strings.Join(e.Names[:min(first, len(e.Names))], ", ")
	if more := len(e.Names) - first; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if len(e.Names) == 1 {
		return fmt.Sprintf("bind %s: found 1 tensor that no operation of %s reads: %s", e.Path, e.Architecture, names)
	}
	return fmt.Sprintf("bind %s: found %d tensors that no operation of %s reads: %s", e.Path, len(e.Names), e.Architecture, names)
}

// Hint says what is probably wrong with the file.
func (e *UnreadError) Hint() string { return e.hint }

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnreadError) Unwrap() error { return errors.ErrUnsupported }

// checkUnread refuses a model with tensors that are not known. It accepts two sorts of them, and notes that they are not used: tensors of layers that predict further
// tokens (multi-token prediction), which have no part in the logits, and scales of activations.
func (b *binding) checkUnread() error {
	h, m := b.h, b.m
	e := &UnreadError{Path: m.Path, Architecture: h.Architecture}
	predicting := b.predictionLayersHeld()
	last, unused, inputScales := -1, 0, 0 // last: the last layer with a tensor of e.Names
	for i := range m.Units {
		u := &m.Units[i]
		for _, t := range u.Tensors {
			switch {
			case b.known[t.Name] || u.Expert > 0: // all experts of a stack are alike
			case slices.Contains(predicting, u.Layer):
				unused++
			case b.isInputScale(&t):
				inputScales++
			default:
				e.Names = append(e.Names, t.Name)
				last = max(last, u.Layer)
			}
		}
	}
	if len(e.Names) > 0 {
		e.hint = unreadHint(h, e.Names, last)
		return e
	}
	if inputScales > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%d scales of activations (input_scale) are not used", inputScales))
	}
	if unused > 0 {
		layers := "layers"
		if len(predicting) == 1 {
			layers = "layer"
		}
		h.Notes = append(h.Notes, fmt.Sprintf("%d tensors of %d %s that predict further tokens are not used", unused, len(predicting), layers))
	}
	return nil
}

// unreadBeside is the end of an error about a missing tensor: it names a tensor of the same layer that no operation reads, because the file may be of another model than
// its keys say. It is "" if there is none.
func (b *binding) unreadBeside(missing string) string {
	var layer int
	if n, _ := fmt.Sscanf(missing, "blk.%d.", &layer); n == 0 {
		return ""
	}
	for i := range b.m.Units {
		u := &b.m.Units[i]
		if u.Layer != layer {
			continue
		}
		for _, t := range u.Tensors {
			if !b.known[t.Name] {
				return fmt.Sprintf("; the layer has %q, which no operation reads", t.Name)
			}
		}
	}
	return ""
}

// predictionLayersHeld lists the layers of the file that predict further tokens: those that nextn_predict_layers counts after the last layer, if they hold
// a tensor nextn.*.
func (b *binding) predictionLayersHeld() []int {
	h, m := b.h, b.m
	var layers []int
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Layer || u.Layer < h.BlockCount || u.Layer >= h.BlockCount+h.predictionLayers {
			continue
		}
		prefix := fmt.Sprintf("blk.%d.nextn.", u.Layer)
		if slices.ContainsFunc(u.Tensors, func(t pack.Tensor) bool { return strings.HasPrefix(t.Name, prefix) }) {
			layers = append(layers, u.Layer)
		}
	}
	return layers
}

// unreadHint says what is probably wrong with a file. names are its tensors that no operation reads, layer is the last layer that has one of them.
func unreadHint(h *Hyper, names []string, layer int) string {
	scale := func(name string) bool {
		return strings.HasSuffix(name, ".scale") || strings.HasSuffix(name, ".input_scale")
	}
	classifier := func(name string) bool { return strings.HasPrefix(name, "cls.") }
	switch {
	case slices.ContainsFunc(names, classifier):
		return "the model is a classifier, such as a reranker, which leat does not run: take a model that makes embeddings"
	case layer >= h.BlockCount:
		return fmt.Sprintf("%s.block_count gives the model %d layers, blk.0 to blk.%d; the file has tensors of blk.%d: convert the model again, or correct that key",
			h.Architecture, h.BlockCount+h.predictionLayers, h.BlockCount+h.predictionLayers-1, layer)
	case slices.ContainsFunc(names, scale):
		return "leat applies scales of " + strings.Join(append(slices.Clone(scaled), scaledStacks...), ", ") + " and output alone, of experts without biases: take a file of another quantization"
	}
	return "this is a variant of the architecture that leat does not compute, and its answers would be wrong: a newer leat may know it"
}
