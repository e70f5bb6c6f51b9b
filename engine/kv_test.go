package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"leat/engine"
	"leat/shaders"
)

// TestBlocksBitEqual demands the same bits of a KV cache of blocks, however a prompt is cut, wherever weights are, and after a
// session forgot positions in the middle of a page and ran them again.
func TestBlocksBitEqual(t *testing.T) {
	for _, g := range goldens(t) {
		if g.name != "llama3-tiny-q4_k_m" {
			continue
		}
		ref := readReference(t, g.base)
		ids := slices.Concat(ref.Tokens, ref.Greedy)[:equalRows]
		for _, kv := range []string{"q8_0", "q4_0"} {
			base := exact(setup(engine.Options{KVType: kv, ContextLength: 128, Tuning: engine.Tuning{Chunk: 16}}))
			m := load(t, g.model, base)
			want := logits(t, m, ids)
			streamed, single := base, base
			streamed.DeviceBytes, single.Tuning.Chunk = leastBudget(t, g.model, base), 1
			for name, o := range map[string]engine.Setup{"streamed": streamed, "one by one": single} {
				sameBits(t, kv+", "+name, logits(t, load(t, g.model, o), ids), want)
			}
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Forward(context.Background(), ids); err != nil {
				t.Fatal(err)
			}
			if err := s.Truncate(21); err != nil {
				t.Fatal(err)
			}
			got, err := s.Forward(context.Background(), ids[21:])
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, kv+", truncated", got, want[len(want)-ref.Vocab:])
			s.Close()
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: logit %d differs", what, i)
			return
		}
	}
}

// A head that is no multiple of a block is refused with a hint, not run wrong.
func TestBlocksWantWholeHeads(t *testing.T) {
	for _, g := range goldens(t) {
		if g.name != "stories260K-f32" { // heads of 8
			continue
		}
		load(t, g.model, setup(engine.Options{ContextLength: 64})) // skips without a device
		_, err := engine.LoadSetup(context.Background(), g.model, setup(engine.Options{KVType: "q8_0"}))
		var size *shaders.HeadSizeError
		if !errors.As(err, &size) || size.Size != 8 || size.Hint() == "" {
			t.Errorf("got %v, wanted a HeadSizeError of 8 values", err)
		}
		return
	}
	t.Skip("no model with heads of 8")
}
