package engine_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/synth/synthetic"
)

// TestExpertsLong: each of 500 tokens has the bits of a model that has all experts in VRAM, though these come and go all the time.
// With -combinations that is so of every policy and many sizes.
func TestExpertsLong(t *testing.T) {
	alone(t)
	path := filepath.Join(t.TempDir(), "m.gguf") // small enough for so many tokens, and hardly more than experts
	shape := synthetic.Shape{BlockCount: 2, EmbeddingLength: 128, HeadCount: 2, HeadCountKV: 1, KeyLength: 32, ExpertCount: 16, ExpertUsedCount: 3, ExpertFeedForwardLength: 128, VocabSize: 300, ContextLength: 512}
	if err := synthetic.Write(path, synthetic.Options{Arch: "qwen3moe", Type: "q8_0", Shape: shape}); err != nil {
		t.Fatal(err)
	}
	n := 500
	base := exact(setup(engine.Options{KVType: "f32", ContextLength: 512, Tuning: engine.Tuning{Chunk: 8, Discrete: true}}))
	whole := load(t, path, base)
	if slotsOf(whole) != 0 {
		t.Fatal("the model that has all in VRAM has slots")
	}
	var want [][]float32
	ids := make([]token.ID, n)
	for i := range ids {
		x := uint32(i+1) * 0x9e3779b1
		ids[i] = token.ID((x ^ x>>15) % uint32(engine.DetailsOf(whole).Hyper.VocabSize))
	}
	tokenByToken(t, whole, ids, func(_ int, row []float32) bool {
		want = append(want, slices.Clone(row))
		return true
	})
	least, all := leastBudget(t, path, base), engine.DetailsOf(whole).Plan.DeviceBytes
	const half = -1 // as much RAM as half of the experts take
	type way struct {
		part   float64 // of the VRAM between the least and all
		host   int64
		policy string
		ahead  bool // layers go ahead
	}
	ways := []way{{0, 1, "lru", false}, {0.4, half, "adaptive", true}}
	if *combinations {
		ways = nil
		for i, policy := range []string{"lru", "stale", "weighted", "adaptive"} {
			for _, part := range []float64{0, 0.2, 0.4, 0.6, 0.8} {
				ways = append(ways, way{part, []int64{1, half, 1 << 30}[(i+int(5*part))%3], policy, part >= 0.4})
			}
		}
	}
	for _, c := range ways {
		t.Run(fmt.Sprintf("%s, %.0f %% of the VRAM, %d bytes of RAM", c.policy, 100*c.part, c.host), func(t *testing.T) {
			o := base
			o.DeviceBytes, o.HostBytes, o.Tuning.ExpertPolicy = least+int64(c.part*float64(all-least)), c.host, c.policy
			if c.host == half {
				o.HostBytes = someRAM(t, path, o, 0.5)
			}
			if c.ahead {
				o = engine.WithAhead(o)
			}
			m := load(t, path, o)
			if slotsOf(m) == 0 {
				t.Fatal("the experts share no slots")
			}
			tokenByToken(t, m, ids, func(i int, row []float32) bool {
				for k := range row {
					if math.Float32bits(row[k]) != math.Float32bits(want[i][k]) {
						t.Errorf("token %d, logit %d: got %g, wanted the bits of %g", i, k, row[k], want[i][k])
						return false
					}
				}
				return true
			})
			x := m.Stats().Experts
			if x.Evictions < int64(n)/4 || (x.Hits > 0) != (c.part > 0) && c.policy == "lru" {
				t.Errorf("%d slots: %+v", slotsOf(m), x)
			}
			if (x.Ahead > 0) != c.ahead || x.Ahead == x.Layers {
				t.Errorf("%d of %d layers went ahead", x.Ahead, x.Layers)
			}
			t.Logf("%d slots of %d, %d in RAM: %+v", slotsOf(m), engine.DetailsOf(m).Plan.Experts.Total(), engine.DetailsOf(m).Plan.Experts.HostCount, x)
		})
	}
}

// tokenByToken runs ids one a step, and shows each one's logits until see has seen enough.
func tokenByToken(t *testing.T, m *engine.Model, ids []token.ID, see func(i int, row []float32) bool) {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range ids {
		row, err := s.Forward(t.Context(), ids[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		if !see(i, row) {
			return
		}
	}
}
