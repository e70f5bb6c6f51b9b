package arch

import "slices"

// keepLogitRows puts [KeepLogitRows] into the ops of the last layer, after all operations whose results the KV cache and the states keep for every
// row, and after rope, which needs each row's position. The operations after it only matter for rows whose logits are wanted.
func keepLogitRows(ops []Op) []Op {
	at := 0
	for i, o := range ops {
		if o.Kind == KVAppend || o.Kind == RopeHeads || o.Kind.CarriesState() {
			at = i + 1
		}
	}
	var live []Value
	for v := range NumValues {
		there := v == LayerInputs || v != Cache && written(ops[:at], v)
		if there && !dead(ops[at:], v) || v == X {
			live = append(live, v)
		}
	}
	return slices.Insert(ops, at, Op{Kind: KeepLogitRows, Values: live})
}

// LogitRowValues lists the values of the model's last layer that [KeepLogitRows] keeps for logit rows. has reports whether the file
// holds a tensor.
func (h *Hyper) LogitRowValues(has func(tensor string) bool) []Value {
	for _, o := range h.Layer(h.BlockCount-1, has) {
		if o.Kind == KeepLogitRows {
			return o.Values
		}
	}
	return nil
}
