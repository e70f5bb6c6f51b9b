package arch

import "slices"

// keepAsked puts KeepAsked into the last layer, behind what the cache and the states need of every row: of what is left,
// only rows that want logits are of use to anybody.
func keepAsked(ops []Op) []Op {
	at := 0
	for i, o := range ops {
		if o.Kind == KVAppend || o.Kind == SSMConv || o.Kind == GatedDeltaNet {
			at = i + 1
		}
	}
	var live []Value
	for v := range NumValues {
		if v != Cache && written(ops[:at], v) && !dead(ops[at:], v) || v == X {
			live = append(live, v)
		}
	}
	return slices.Insert(ops, at, Op{Kind: KeepAsked, Values: live})
}

// Kept lists the values that rows that want logits go on with in the model's last layer, see [KeepAsked]. has reports whether the file
// holds a tensor.
func (h *Hyper) Kept(has func(tensor string) bool) []Value {
	for _, o := range h.Layer(h.BlockCount-1, has) {
		if o.Kind == KeepAsked {
			return o.Values
		}
	}
	return nil
}
