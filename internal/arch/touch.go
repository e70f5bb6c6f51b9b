package arch

import "slices"

// Reads lists the values that an operation reads. What the Ops of Experts, or of a fused operation, hand to each other is not among them.
func (o *Op) Reads() []Value {
	switch o.Kind {
	case Bias, RopeTurn:
		return []Value{o.Dst}
	case MulMatID:
		return []Value{o.A, Chosen}
	case SumExperts:
		return present(o.A, o.B, Share)
	case GatedDeltaNet:
		return present(o.A, o.B, Alpha)
	case Attention:
		return []Value{o.A, Cache}
	case TurnedAppend, NormedAppend:
		return []Value{Q, K, V}
	case KeepAsked:
		return o.Values
	case Experts:
		var reads, written []Value
		for i := range o.Ops {
			for _, v := range o.Ops[i].Reads() {
				if !slices.Contains(written, v) {
					reads = append(reads, v)
				}
			}
			written = append(written, o.Ops[i].Writes()...)
		}
		return present(reads...)
	}
	return present(o.A, o.B)
}

// Writes lists the values that an operation writes, less those of a fused one that nothing reads behind it.
func (o *Op) Writes() []Value {
	switch o.Kind {
	case KeepAsked:
		return nil
	case KVAppend:
		return []Value{Cache}
	case TurnedAppend, NormedAppend, TurnedProducts:
		return []Value{Q, Cache}
	case Route:
		return []Value{Chosen, Share}
	case NormedRoute:
		return []Value{o.Dst, Chosen, Share}
	case Siblings, Experts:
		var writes []Value
		for i := range o.Ops {
			writes = append(writes, o.Ops[i].Writes()...)
		}
		return present(writes...)
	}
	return present(o.Dst)
}

// present are the values that are not None, each once.
func present(values ...Value) (list []Value) {
	for _, v := range values {
		if v != None && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
