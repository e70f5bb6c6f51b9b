package step

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
)

// unitOps fuses each layer's operations, see [arch.Fuse], and assigns each to the unit that holds its weights; the plan keeps all weights of an
// operation in one unit. An operation without weights goes to the unit of the operation before it; the operation of kind [arch.Experts] goes
// to every unit of the layer that holds experts. unitOps fails if an operation's weights are not in the unit of the operation before it or a later one.
func unitOps(units []plan.Unit, layer func(l int) []arch.Op) ([][]arch.Op, error) {
	ops := make([][]arch.Op, len(units))
	for i := 0; i < len(units); {
		if !ofLayer(&units[i]) {
			i++
			continue
		}
		l, at := units[i].Layer, i
		for i < len(units) && ofLayer(&units[i]) && units[i].Layer == l {
			i++
		}
		for _, o := range arch.Fuse(layer(l)) {
			if o.Kind == arch.Experts { // each unit computes its own experts
				at = dealExperts(ops[at:i], units[at:i], o) + at
				continue
			}
			for at < i && !hasTensors(&units[at], o.Weights()) {
				at++
			}
			if at == i {
				return nil, fmt.Errorf("layer %d: no unit, from the one in use on, holds %s", l, strings.Join(o.Weights(), ", "))
			}
			ops[at] = append(ops[at], o)
		}
	}
	return ops, nil
}

// ofLayer reports whether a unit holds weights of a layer, not of the output norm or the head.
func ofLayer(u *plan.Unit) bool { return u.Kind == pack.Layer || u.Kind == pack.Experts }

// hasTensors reports whether a unit holds all of the named tensors, which are the weights of one operation.
func hasTensors(u *plan.Unit, tensors []string) bool {
	return !slices.ContainsFunc(tensors, func(name string) bool {
		_, ok := u.Tensor(name)
		return !ok
	})
}

// dealExperts assigns the experts operation o to each unit of a layer that holds experts, and returns the index of the last such unit.
func dealExperts(ops [][]arch.Op, units []plan.Unit, o arch.Op) (last int) {
	for i := range units {
		if units[i].Kind == pack.Experts {
			ops[i] = append(ops[i], o)
			last = i
		}
	}
	return last
}
