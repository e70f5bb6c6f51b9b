package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
)

// UnreadError says that a file has tensors that no operation of its architecture reads: leat would compute
// something else than the model's authors did.
type UnreadError struct {
	Path, Architecture string
	Names              []string // all of them, in the order of the units
	hint               string
}

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

// Hint says what is probably the matter.
func (e *UnreadError) Hint() string { return e.hint }

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnreadError) Unwrap() error { return errors.ErrUnsupported }

// checkUnread refuses a model with tensors that are not read, except for those that have no part in the logits:
//   - layers that predict further tokens (multi-token prediction): nextn_predict_layers counts them, and they hold a tensor
//     nextn.*. They come after the last layer; a note says that they are not used.
func (b *binding) checkUnread() error {
	h, m := b.h, b.m
	e := &UnreadError{Path: m.Path, Architecture: h.Architecture}
	predicting := b.predictingLayers()
	beyond, unused := -1, 0
	for i := range m.Units {
		u := &m.Units[i]
		for _, t := range u.Tensors {
			switch {
			case b.read[t.Name] || u.Expert > 0: // all experts of a stack are alike
			case slices.Contains(predicting, u.Layer):
				unused++
			default:
				e.Names = append(e.Names, t.Name)
				beyond = max(beyond, u.Layer)
			}
		}
	}
	if len(e.Names) > 0 {
		e.hint = b.unreadHint(e.Names, beyond)
		return e
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

// predictingLayers are those that nextn_predict_layers counts and that are what it says.
func (b *binding) predictingLayers() []int {
	h, m := b.h, b.m
	var layers []int
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Layer || u.Layer < h.BlockCount || u.Layer >= h.BlockCount+h.predicting {
			continue
		}
		prefix := fmt.Sprintf("blk.%d.nextn.", u.Layer)
		if slices.ContainsFunc(u.Tensors, func(t pack.Tensor) bool { return strings.HasPrefix(t.Name, prefix) }) {
			layers = append(layers, u.Layer)
		}
	}
	return layers
}

func (b *binding) unreadHint(names []string, layer int) string {
	scale := func(name string) bool {
		return strings.HasSuffix(name, ".scale") || strings.HasSuffix(name, ".input_scale")
	}
	switch {
	case layer >= b.h.BlockCount:
		return fmt.Sprintf("%s.block_count gives the model %d layers, blk.0 to blk.%d; the file has tensors of blk.%d: convert the model again, or correct that key",
			b.h.Architecture, b.h.BlockCount+b.h.predicting, b.h.BlockCount+b.h.predicting-1, layer)
	case slices.ContainsFunc(names, scale):
		return "leat applies no scales that stand beside their weights: take a file of another quantization"
	}
	return "this is a variant of the architecture that leat does not compute, and its answers would be wrong: a newer leat may know it"
}
