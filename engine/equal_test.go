package engine_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leat/decompose"
	"leat/engine"
	"leat/engine/token"
	"leat/internal/plan"
	"leat/vk/mem"
)

// TestBitEqual demands the same bits of every way to run the same tokens: from the
// GGUF and its pack, within budgets from two units up to all, in any prefill chunk,
// through one queue or two, with the streamed part in host memory or on disk: with the kernels that the device has for speed, and for two models with float32's.
func TestBitEqual(t *testing.T) {
	for _, g := range goldensInTurn(t, func(g golden) bool {
		switch g.name {
		case "leat-demo-q4_k_m", "llama3-tiny-q4_k_m", "qwen2-tiny-q8_0", "llama-tiny-bf16", "leat-demo-moe-q4_k_m":
			return true
		}
		return strings.HasSuffix(g.name, "-nano") // an architecture that has no other model here
	}) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			testBitEqual(t, g, setup(engine.Options{}))
		})
		if strings.HasPrefix(g.name, "leat-demo") {
			t.Run(g.name+", float32", func(t *testing.T) {
				t.Parallel()
				testBitEqual(t, g, exact(setup(engine.Options{KVType: "f32"})))
			})
		}
	}
}

// answers are the logits of all ids, then of prompts of several lengths and of tokens behind each.
func answers(t *testing.T, m *engine.Model, ids []token.ID) []float32 {
	t.Helper()
	all := logits(t, m, ids)
	for _, n := range []int{1, 2, 9, 17, 30} {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]token.ID{ids[:n], ids[n : n+1], ids[n+1 : n+2]} {
			row, err := s.Forward(t.Context(), part)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, row...)
		}
		s.Close()
	}
	return all
}

// equalRows is how many positions are compared: past a page of the KV cache and past
// several chunks.
const equalRows = 44

func testBitEqual(t *testing.T, g golden, base engine.Setup) {
	ref := readReference(t, g.base)
	ids := slices.Concat(ref.Tokens, ref.Greedy)[:equalRows]
	pack := filepath.Join(t.TempDir(), "pack")
	if _, err := decompose.Run(context.Background(), g.model, pack, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	base.ContextLength, base.Tuning.Chunk = 128, 16
	whole := load(t, g.model, base)
	want := answers(t, whole, ids)
	all := engine.DetailsOf(whole).Plan.DeviceBytes
	if len(engine.DetailsOf(whole).Plan.Ring) != 0 {
		t.Fatal("the model without a budget is not all resident")
	}
	least := max(leastBudget(t, g.model, base), leastBudget(t, pack, base)) // a pack rounds experts up to blocks of the disk

	type variant struct {
		name  string
		model string
		o     engine.Setup
	}
	variants := []variant{{"pack", pack, base}}
	for i := range 5 {
		o := base
		o.DeviceBytes = least + int64(i)*(all-least)/4
		o.HostBytes = 1 // too little for a host tier: streamed from disk
		variants = append(variants, variant{fmt.Sprintf("budget %d of 5, disk", i+1), pack, o})
		o.HostBytes = 1 << 30
		variants = append(variants, variant{fmt.Sprintf("budget %d of 5, host", i+1), g.model, o})
	}
	for _, chunk := range []int{1, 3, 8, 9, 128} {
		o := base
		o.Tuning.Chunk = chunk
		variants = append(variants, variant{fmt.Sprintf("chunk %d", chunk), g.model, o})
	}
	short := base
	short.Tuning.MaxSubmit, short.Tuning.Chunk = time.Nanosecond, 13 // every product is split by rows
	variants = append(variants, variant{"shortest submissions", g.model, short})
	one := base
	one.Tuning.OneQueue = true
	variants = append(variants, variant{"one queue", g.model, one})
	one.DeviceBytes = least
	variants = append(variants, variant{"one queue, streamed", pack, one})
	for i, ring := range []int64{1, 1 << 20, 64 << 20} { // the least, and more than a token needs
		o := base
		o.DeviceBytes, o.Tuning.Layout.RingBytes, o.HostBytes = (least+all)/2, ring, int64(i)<<21
		variants = append(variants, variant{fmt.Sprintf("ring of %d bytes, two lanes", ring), g.model, engine.WithLanes(o, 2)})
	}

	for _, spread := range []engine.Spread{engine.Prefix, engine.Edges} {
		o := base
		o.DeviceBytes, o.HostBytes = (least+all)/2, 2<<20
		o.Tuning.Layout = engine.Layout{Spread: spread, StagingSlots: 3, StagingBytes: 64 << 10, BlockBytes: 256 << 10}
		variants = append(variants, variant{spread.String(), g.model, o})
	}

	for _, kind := range []mem.Shared{mem.Imported, mem.Mapped} {
		for _, budget := range []int64{all + 4<<20, (least + all) / 2} {
			o := base
			o.DeviceBytes, o.HostBytes = budget, 1
			variants = append(variants, variant{fmt.Sprintf("in place, %v, %d bytes", kind, budget), []string{g.model, pack}[int(kind)%2], engine.WithShared(o, kind)})
		}
	}
	if engine.DetailsOf(whole).Hyper.Experts.Count > 0 { // a layer's experts in several units: all in VRAM, none, some
		for i, budget := range []int64{all + 4<<20, least, (least + all) / 2} {
			o := base
			o.DeviceBytes, o.HostBytes, o.Tuning.Layout.PartBytes = budget, 1<<30, 200<<10
			variants = append(variants, variant{fmt.Sprintf("experts in parts, %d bytes", budget), []string{g.model, pack}[i%2], o})
		}
	}
	onTwo := decompose.Options{Stripe: []string{filepath.Join(t.TempDir(), "second")}, StripeBytes: 16 << 10}
	if _, err := decompose.Run(context.Background(), g.model, pack+".striped", onTwo); err != nil {
		t.Fatal(err)
	}
	two := base
	two.DeviceBytes, two.HostBytes = least, 1
	variants = append(variants, variant{"striped over two folders, disk", pack + ".striped", two})
	for i, at := range []int64{1, 3} { // some of it in each of the three places
		o := base
		o.DeviceBytes, o.HostBytes = least+at*(all-least)/5, 1<<30
		inHost := engine.DetailsOf(load(t, pack, o)).Plan
		o.HostBytes = inHost.HostBytes
		for _, n := range inHost.HostBlocks {
			o.HostBytes -= n / 2
		}
		variants = append(variants, variant{fmt.Sprintf("mix %d of all three tiers", i+1), pack, engine.WithLanes(o, 1+i)})
	}
	mixed, ran := 0, 0

	for i, v := range variants {
		if !g.takes(i) {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			ran++
			m := load(t, v.model, v.o)
			got := answers(t, m, ids)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("logit %d of row %d: got %g, wanted the bits of %g", i%ref.Vocab, i/ref.Vocab, got[i], want[i])
				}
			}
			p := engine.DetailsOf(m).Plan
			if tiersOf(&p) == 3 {
				mixed++
			}
			used, peak := m.Stats().VRAMBytes, m.Stats().VRAMPeak
			if used != p.DeviceBytes || peak > p.DeviceBudget {
				t.Errorf("VRAM: %d bytes in use, at most %d; planned %d, budget %d", used, peak, p.DeviceBytes, p.DeviceBudget)
			}
			t.Logf("%d streamed bytes a step, %d from disk, %d bytes of VRAM", p.StreamedBytes, p.DiskBytes, used)
		})
	}
	if mixed == 0 && ran == len(variants) && g.name == "leat-demo-q4_k_m" { // the others may be too small
		t.Error("no way had weights in VRAM, in host memory and on disk at once")
	}
}

// tiersOf counts the tiers that a plan uses.
func tiersOf(p *plan.Plan) int {
	tiers := map[string]bool{}
	for i := range p.Units {
		tiers[p.Units[i].Tier.String()] = true
	}
	return len(tiers)
}

// TestFewSameBits demands the same bits of steps of one to eight rows: what shares a step with a token does not matter.
func TestFewSameBits(t *testing.T) {
	alone(t)
	two := []string{"llama-tiny-q4_k_m", "qwen2-tiny-q8_0"} // that are tried in both ways
	one := []string{"leat-demo-q4_k_m", "qwen3-tiny-q6_k", "llama-tiny-bf16", "leat-demo-moe-q8_0"}
	for _, g := range goldensInTurn(t, func(g golden) bool { return slices.Contains(two, g.name) || slices.Contains(one, g.name) }) {
		ways := 1
		if slices.Contains(two, g.name) {
			ways = 2
		}
		for _, turns := range []bool{false, true}[:ways] {
			t.Run(fmt.Sprintf("%s, turns %v", g.name, turns), func(t *testing.T) {
				t.Parallel()
				ids := readReference(t, g.base).Tokens
				m := load(t, g.model, engine.WithRoutes(setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 8}, Sessions: 8}), true, turns))
				vocab := engine.DetailsOf(m).Hyper.VocabSize
				// Session i has read i+1 ids, and decodes the next one.
				open := func(i int) *engine.Session {
					s, err := m.NewSession()
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Forward(t.Context(), ids[i:2*i+1]); err != nil {
						t.Fatal(err)
					}
					return s
				}
				var want []float32
				for i := range 8 {
					s := open(i)
					row, err := s.Forward(t.Context(), ids[2*i+1:2*i+2])
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, row...)
					s.Close()
				}
				for _, n := range []int{2, 3, 8} {
					var rows []engine.Asking
					for i := range n {
						rows = append(rows, engine.Asking{Session: open(i), Token: ids[2*i+1], Logits: true})
					}
					got, err := m.Step(t.Context(), rows)
					if err != nil {
						t.Fatal(err)
					}
					sameBits(t, fmt.Sprintf("%d rows of a step", n), got, want[:n*vocab])
					for i := range rows {
						rows[i].Session.Close()
					}
				}
			})
		}
	}
}

// leastBudget finds the smallest budget that the plan accepts: two units in a ring,
// and scratch.
func leastBudget(t *testing.T, path string, o engine.Setup) int64 {
	t.Helper()
	o.DeviceBytes = 1
	_, err := engine.LoadSetup(context.Background(), path, lend(o))
	need := budgetNeed(t, err)
	o.DeviceBytes = need - 1
	_, err = engine.LoadSetup(context.Background(), path, lend(o))
	if budgetNeed(t, err) != need {
		t.Fatalf("the least budget is %d, but not when %d are offered", need, need-1)
	}
	return need
}
