package step

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
)

// unitOps deals each layer's operations out to the units that hold their weights: the plan keeps the weights of one in one unit. What reads
// no weight runs behind what was before it.
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
			if o.Kind == arch.Experts { // each unit computes its own
				at = dealExperts(ops[at:i], units[at:i], o) + at
				continue
			}
			for at < i && !holds(&units[at], o.Weights()) {
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

func ofLayer(u *plan.Unit) bool { return u.Kind == pack.Layer || u.Kind == pack.Experts }

// holds reports whether a unit holds all of these tensors.
func holds(u *plan.Unit, tensors []string) bool {
	return !slices.ContainsFunc(tensors, func(name string) bool {
		_, ok := u.Tensor(name)
		return !ok
	})
}

// dealExperts gives the operation of experts to each unit that holds some, and returns the last one's index.
func dealExperts(ops [][]arch.Op, units []plan.Unit, o arch.Op) (last int) {
	for i := range units {
		if units[i].Kind == pack.Experts {
			ops[i] = append(ops[i], o)
			last = i
		}
	}
	return last
}
