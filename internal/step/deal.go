package step

import (
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
)

// unitOps deals each layer's program out to the units that hold its weights. What
// reads no weight runs behind what was before it. Fused operations whose weights are in
// several units stay so only where all of these stay in VRAM.
func unitOps(units []plan.Unit, layer func(l int) []arch.Op) ([][]arch.Op, error) {
	ops := make([][]arch.Op, len(units))
	for i := 0; i < len(units); {
		if !ofLayer(&units[i]) {
			i++
			continue
		}
		l, first, at := units[i].Layer, i, i
		for i < len(units) && ofLayer(&units[i]) && units[i].Layer == l {
			i++
		}
		for _, fused := range arch.Fuse(layer(l)) {
			for _, o := range apart(units[at:i], &fused) {
				if o.Kind == arch.Experts { // each unit computes its own
					at = dealExperts(ops[at:i], units[at:i], o) + at
					continue
				}
				for _, name := range o.Weights() {
					for at < i && !holds(&units[at], name) && !(o.Ops != nil && heldBefore(units[first:at], name)) {
						at++
					}
					if at == i {
						return nil, fmt.Errorf("layer %d: %s is not in its units, from the one in use on", l, name)
					}
				}
				ops[at] = append(ops[at], o)
			}
		}
	}
	return ops, nil
}

func ofLayer(u *plan.Unit) bool { return u.Kind == pack.Layer || u.Kind == pack.Experts }

func holds(u *plan.Unit, tensor string) bool {
	_, ok := u.Tensor(tensor)
	return ok
}

func heldBefore(units []plan.Unit, tensor string) bool {
	return slices.ContainsFunc(units, func(u plan.Unit) bool { return holds(&u, tensor) })
}

// apart is an operation, or what it stands for where its weights are not together.
func apart(units []plan.Unit, o *arch.Op) (parts []arch.Op) {
	if o.Ops == nil || together(units, o) {
		return []arch.Op{*o}
	}
	for i := range o.Ops {
		parts = append(parts, apart(units, &o.Ops[i])...)
	}
	return parts
}

// together reports whether the weights of an operation are in one of the units, or in several that stay in VRAM.
func together(units []plan.Unit, o *arch.Op) bool {
	from, to := len(units), -1
	for _, name := range o.Weights() {
		i := slices.IndexFunc(units, func(u plan.Unit) bool { return holds(&u, name) })
		if i < 0 {
			return false
		}
		from, to = min(from, i), max(to, i)
	}
	return from >= to || !slices.ContainsFunc(units[from:to+1], func(u plan.Unit) bool { return u.Tier != plan.VRAM })
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
