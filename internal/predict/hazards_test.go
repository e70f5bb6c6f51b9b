package predict

import (
	"testing"

	"leat/internal/arch"
)

func TestHazards(t *testing.T) {
	product := func(dst, a arch.Value) arch.Op { return arch.Op{Kind: arch.MulMatID, Dst: dst, A: a, Weight: "w"} }
	swiglu := arch.Op{Kind: arch.SwiGLU, Dst: arch.ExpertGate, A: arch.ExpertGate, B: arch.ExpertUp}
	bias := func(v, b arch.Value) arch.Op { return arch.Op{Kind: arch.Add, Dst: v, A: v, B: b} }
	norm := arch.Op{Kind: arch.RMSNorm, Dst: arch.Norm, A: arch.X}
	add := arch.Op{Kind: arch.Add, Dst: arch.X, A: arch.X, B: arch.Norm}
	gate, up, down := product(arch.ExpertGate, arch.Norm), product(arch.ExpertUp, arch.Norm), product(arch.ExpertOut, arch.ExpertGate)
	for name, tt := range map[string]struct {
		ops  []arch.Op
		want []bool
	}{
		"an expert":             {[]arch.Op{gate, up, swiglu, down}, []bool{false, false, true, true}},
		"an expert with biases": {[]arch.Op{gate, bias(arch.ExpertGate, arch.GateBias), up, bias(arch.ExpertUp, arch.UpBias), swiglu, down}, []bool{false, true, false, true, true, true}},
		"writes what was read":  {[]arch.Op{norm, add}, []bool{false, true}},
		"reads what was read":   {[]arch.Op{product(arch.Q, arch.Norm), product(arch.K, arch.Norm)}, []bool{false, false}},
	} {
		var h hazards
		for i := range tt.ops {
			if got := h.wait(&tt.ops[i]); got != tt.want[i] {
				t.Errorf("%s: operation %d waits: %v, wanted %v", name, i, got, tt.want[i])
			}
		}
	}
}
