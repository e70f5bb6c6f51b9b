package engine_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"leat/decompose"
	"leat/engine"
	"leat/engine/token"
	"leat/internal/plan"
	"leat/vk/mem"
)

// mixtures are the models whose experts are tried in few slots.
var mixtures = []string{"leat-demo-moe-q4_k_m", "mixtral-tiny-q4_k_m", "qwen3moe-tiny-q4_k_m"}

// slotsOf is how many experts VRAM holds; 0: they do not share slots.
func slotsOf(m *engine.Model) int {
	p := engine.DetailsOf(m).Plan
	if p.Experts == nil {
		return 0
	}
	return p.Experts.Slots()
}

// TestExpertSlots: whatever VRAM the experts share, wherever they come from and whoever has to go, the logits are the bits of a
// model that has all of them in VRAM: of a prompt, of steps of few rows, and of a token at a time.
func TestExpertSlots(t *testing.T) {
	for _, g := range goldensInTurn(t, func(g golden) bool {
		return slices.Contains(mixtures, g.name) || testing.Short() && g.routed() // for the race detector there is another
	}) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			base := exact(setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 24, Discrete: true}}))
			var ids []token.ID
			for i := range 40 {
				ids = append(ids, token.ID(1+7*i%200))
			}
			whole := load(t, g.model, base)
			want := prefillAndDecode(t, whole, ids)
			if slotsOf(whole) != 0 {
				t.Fatal("the model that has all in VRAM has slots")
			}
			all, least := engine.DetailsOf(whole).Plan.DeviceBytes, leastBudget(t, g.model, base)
			pack := filepath.Join(t.TempDir(), "pack")
			if _, err := decompose.Run(t.Context(), g.model, pack, decompose.Options{}); err != nil {
				t.Fatal(err)
			}
			const half = -1 // as much RAM as half of the experts take
			for i, c := range []struct {
				part   float64 // of the VRAM between the least and all
				host   int64
				policy string
				path   string
				change func(o *engine.Setup)
			}{
				{0, 1 << 30, "", g.model, nil},
				{0, 1, "lru", pack, nil},
				{0.3, 1, "stale", g.model, nil},
				{0.5, half, "adaptive", pack, nil},
				{0.5, 1 << 30, "lru", pack, func(o *engine.Setup) { o.Tuning.OneQueue = true }},
				{0.6, half, "weighted:3", g.model, func(o *engine.Setup) { *o = engine.WithLanes(*o, 2) }},
				{0.7, 1, "", g.model, func(o *engine.Setup) { o.Tuning.Chunk = 5 }},
				{0.2, 1 << 30, "", g.model, func(o *engine.Setup) { o.Tuning.Layout.BlockBytes = 64 << 10 }},
				{0.5, half, "", g.model, func(o *engine.Setup) { *o = engine.WithTogether(*o) }},
				{0.3, half, "", pack, nil},
				{0.4, 1, "", pack, func(o *engine.Setup) { *o = oneMemory(*o, mem.Imported) }},
				{0.6, 1, "lru", pack, func(o *engine.Setup) { *o = oneMemory(*o, mem.Mapped) }},
			} {
				if !g.takes(i) {
					continue
				}
				o := base
				o.DeviceBytes, o.HostBytes, o.Tuning.ExpertPolicy = least+int64(c.part*float64(all-least)), c.host, c.policy
				if c.change != nil {
					c.change(&o)
				}
				if o.HostBytes == half {
					o.HostBytes = someRAM(t, c.path, o, 0.5)
				}
				t.Run(fmt.Sprintf("%d, %s", i+1, c.policy), func(t *testing.T) {
					m := load(t, c.path, o)
					if slotsOf(m) == 0 || engine.DetailsOf(m).Plan.InPlace {
						t.Fatal("the experts share no slots")
					}
					for round := range 2 {
						sameBits(t, fmt.Sprintf("round %d", round+1), prefillAndDecode(t, m, ids), want)
					}
					used := m.Stats().VRAMBytes
					p, s := engine.DetailsOf(m).Plan, m.Stats()
					if used != p.DeviceBytes || used > o.DeviceBytes {
						t.Errorf("%d bytes of VRAM in use, planned %d, allowed %d", used, p.DeviceBytes, o.DeviceBytes)
					}
					x := s.Experts
					inRAM, all := p.Experts.HostCount, p.Experts.Total()
					if x.DiskMisses == 0 && inRAM < all || inRAM == 0 && x.HostMisses > 0 || x.Hits+x.HostMisses+x.DiskMisses == 0 {
						t.Errorf("%d of %d experts in RAM, yet %+v", inRAM, all, x)
					}
					layers := int64(0)
					for i := range p.Units {
						if p.Units[i].Tier == plan.Cached {
							layers++
						}
					}
					// Of a prompt's steps the last layer, which computes one row or none, is not counted; the 25th row, where it is left alone, is
					// a step as any that is decoded.
					narrow := int64((24 + p.Chunk - 1) / p.Chunk)
					if steps := s.Steps; x.Layers != layers*steps-2*narrow || x.Needed < x.Layers || x.Asked() < x.Needed || (x.VRAMBytes > 0) != (x.Hits > 0) || x.Stalled > s.Stalled || c.part == 0 && x.Stalled == 0 {
						t.Errorf("%d steps, the device waited %v: %+v", steps, s.Stalled, x)
					}
					if c.host == half && (inRAM == 0 || inRAM == all) {
						t.Errorf("%d of %d experts in RAM, wanted some", inRAM, all)
					}
					t.Logf("%d slots of %d, %d in RAM: %+v", slotsOf(m), p.Experts.Total(), p.Experts.HostCount, x)
				})
			}
		})
	}
}

// oneMemory has device and host share one.
func oneMemory(o engine.Setup, kind mem.Shared) engine.Setup {
	o.Tuning.Discrete = false
	return engine.WithShared(o, kind)
}

// someRAM is a budget of RAM in which about a part of the experts can rest beside what is staged.
func someRAM(t *testing.T, path string, o engine.Setup, part float64) int64 {
	t.Helper()
	o.HostBytes = 1 << 30
	m := load(t, path, o)
	p := engine.DetailsOf(m).Plan
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var rest int64
	for _, n := range p.Experts.HostBlocks {
		rest += int64(part * float64(n))
	}
	return max(rest+4*(p.Staging.SlotBytes+p.Experts.Staging.SlotBytes), rest*64/49) // a part of RAM is for staging, twice
}

// TestExpertSlotsFast: the kernels that a device has for speed find the same bits through any slots. Where all are in VRAM the
// last product may be one with the sum, which rounds in another order; of what follows in bytes some are then the next ones.
func TestExpertSlotsFast(t *testing.T) {
	g := goldenNamed(t, "leat-demo-moe-q8_0")
	base := engine.WithRoutes(setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 24, Discrete: true}}), true, false)
	ref := readReference(t, g.base)
	ids := slices.Concat(ref.Tokens, ref.Greedy)[:40]
	whole := load(t, g.model, base)
	all := prefillAndDecode(t, whole, ids)
	least, most := leastBudget(t, g.model, base), engine.DetailsOf(whole).Plan.DeviceBytes
	var first []float32
	for _, part := range []float64{0.05, 0.5, 0.8} {
		o := base
		o.DeviceBytes = least + int64(part*float64(most-least))
		m := load(t, g.model, o)
		if slotsOf(m) == 0 {
			t.Fatal("the experts share no slots")
		}
		got := prefillAndDecode(t, m, ids)
		if first == nil {
			first = got
		}
		sameBits(t, fmt.Sprintf("%d slots", slotsOf(m)), got, first)
		if e := relativeError(got, all); !(e < 1e-2) {
			t.Errorf("%d slots: the logits differ by %.2e from those of all in VRAM", slotsOf(m), e)
		}
	}
}
