package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/token"
)

// mixtures are the models whose experts are tried in few slots.
var mixtures = []string{"leat-demo-moe-q4_k_m", "mixtral-tiny-q4_k_m", "qwen3moe-tiny-q4_k_m"}

// slotsOf is how many experts VRAM holds; 0: they do not share slots.
func slotsOf(m *engine.Model) int {
	p := m.Plan()
	if p.Experts == nil {
		return 0
	}
	return p.Experts.Slots()
}

// TestExpertSlots: whatever VRAM the experts share, wherever they come from and whoever has to go, the logits are the bits of a
// model that has all of them in VRAM: of a prompt, of steps of few rows, and of a token at a time.
func TestExpertSlots(t *testing.T) {
	for _, g := range goldens(t) {
		if !slices.Contains(mixtures, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			base := exact(engine.Options{KVType: "f32", ContextLength: 128, Chunk: 24, Discrete: true})
			var ids []token.ID
			for i := range 40 {
				ids = append(ids, token.ID(1+7*i%200))
			}
			whole := load(t, g.model, base)
			want := prefillAndDecode(t, whole, ids)
			if slotsOf(whole) != 0 {
				t.Fatal("the model that has all in VRAM has slots")
			}
			all, least := whole.Plan().DeviceBytes, leastBudget(t, g.model, base)
			fewest := 1 << 30
			for i := range 4 {
				for _, host := range []int64{1 << 30} {
					o := base
					o.DeviceBytes, o.HostBytes = least+int64(i)*(all-least)/4, host
					t.Run(fmt.Sprintf("budget %d of 4, %d of RAM", i+1, host), func(t *testing.T) {
						m := load(t, g.model, o)
						if slotsOf(m) == 0 {
							t.Fatal("the experts share no slots")
						}
						fewest = min(fewest, slotsOf(m))
						for round := range 2 {
							sameBits(t, fmt.Sprintf("round %d", round+1), prefillAndDecode(t, m, ids), want)
						}
						t.Logf("%d slots of %d", slotsOf(m), m.Plan().Experts.All())
					})
				}
			}
		})
	}
}
