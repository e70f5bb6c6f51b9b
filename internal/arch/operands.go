package arch

import "slices"

// Reads lists the values that an operation reads. For [Experts] it leaves out values that an earlier one of its Ops has written.
func (o *Op) Reads() []Value {
	switch o.Kind {
	case Bias, RopeHeads, AddRows:
		return []Value{o.Dst}
	case MulMatID:
		return []Value{o.A, Chosen}
	case SumExperts:
		if o.Plain {
			return present(o.A, o.B)
		}
		return present(o.A, o.B, ChosenWeights)
	case PairScale:
		return present(o.A, ChosenWeights)
	case SelectiveScan:
		return present(o.A, o.B, SSMDelta)
	case GatedDeltaNet:
		return present(o.A, o.B, Alpha)
	case Attention:
		return []Value{o.A, Cache}
	case RopedAppend, NormedRopedAppend:
		return []Value{Q, K, V}
	case KeepLogitRows:
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

// Writes lists the values that an operation writes and that later operations may read. Values that only the Ops of a fused operation read are left out.
func (o *Op) Writes() []Value {
	switch o.Kind {
	case KeepLogitRows:
		return nil
	case KVAppend:
		return []Value{Cache}
	case RopedAppend, NormedRopedAppend, RopedProducts:
		return []Value{Q, Cache}
	case Route:
		return []Value{Chosen, ChosenWeights}
	case NormedRoute:
		return []Value{o.Dst, Chosen, ChosenWeights}
	case Siblings, Experts:
		var writes []Value
		for i := range o.Ops {
			writes = append(writes, o.Ops[i].Writes()...)
		}
		return present(writes...)
	}
	return present(o.Dst)
}

// CarriesState reports whether operations of kind k carry a sequence's state from row to row: they read what rows before the step left, and write what rows after
// it read.
func (k Kind) CarriesState() bool {
	return k == SSMConv || k == GatedDeltaNet || k == SelectiveScan || k == StateSpace
}

// present lists the given values without None, and each only once.
func present(values ...Value) (list []Value) {
	for _, v := range values {
		if v != None && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Weights lists the names of the tensors that an operation reads, those of its Ops included. A name may occur more than once.
func (o *Op) Weights() []string {
	var names []string
	for _, name := range []string{o.Weight, o.Weight2, o.Weight3} {
		if name != "" {
			names = append(names, name)
		}
	}
	for i := range o.Ops {
		names = append(names, o.Ops[i].Weights()...)
	}
	return names
}

// weightsOf lists the names of the tensors that ops read.
func weightsOf(ops []Op) (names []string) {
	for i := range ops {
		names = append(names, ops[i].Weights()...)
	}
	return names
}

// touch marks the values that operations of a layer read or write, and those that the kernels of experts use beside them.
func touch(h *Hyper, ops []Op) {
	for i := range ops {
		for _, v := range ops[i].Reads() {
			h.touched[v] = true
		}
		for _, v := range ops[i].Writes() {
			h.touched[v] = true
		}
		if ops[i].Kind == Experts {
			h.touched[Pairs] = true
			touch(h, ops[i].Ops)
		}
	}
}
