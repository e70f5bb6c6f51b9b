package arch_test

import (
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// stacked is the model with the matrices of each expert's gate and up in one tensor, the gate's rows first.
func stacked(t *testing.T, m *pack.Model, rows int64) *pack.Model {
	t.Helper()
	return with(t, m, func(_ *gguf.Metadata, units []pack.Unit) []pack.Unit {
		for i := range units {
			u := &units[i]
			if u.Kind != pack.Experts {
				continue
			}
			u.Tensors = slices.DeleteFunc(u.Tensors, func(x pack.Tensor) bool { return strings.Contains(x.Name, "ffn_up_exps") })
			for k := range u.Tensors {
				if x := &u.Tensors[k]; strings.Contains(x.Name, "ffn_gate_exps") {
					x.Name = strings.Replace(x.Name, "ffn_gate_exps", "ffn_gate_up_exps", 1)
					x.Bytes *= rows / x.Shape[0]
					x.Shape = []int64{rows, x.Shape[1]}
				}
			}
		}
		return units
	})
}

// Gate and up of experts may be parts of one tensor, which must have the rows of both.
func TestGateUpExperts(t *testing.T) {
	m := nano(t, "qwen2moe-nano")
	h, err := arch.Read(stacked(t, m, 64))
	if err != nil {
		t.Fatal(err)
	}
	v := stacked(t, m, 64)
	ops := h.Layer(0, v.Has)
	at := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.Experts })
	gate, up := ops[at].Ops[0], ops[at].Ops[1]
	if gate.Weight != "blk.0.ffn_gate_up_exps.weight" || up.Weight != gate.Weight || gate.Row != 0 || up.Row != 32 {
		t.Errorf("found %+v and %+v", gate, up)
	}
	if _, err := arch.Read(stacked(t, m, 96)); err == nil || !strings.Contains(err.Error(), "wanted [64 ") {
		t.Errorf("of 96 rows: error %v", err)
	}
}
