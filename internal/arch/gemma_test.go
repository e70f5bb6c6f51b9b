package arch_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"leat/internal/arch"
)

// layerKind is one letter for each layer's mask and rope: w, c and f for a window, chunks and all positions, and n after it without rope, s with the second rope.
func layerKinds(h *arch.Hyper) (kinds string) {
	for _, s := range h.Layers {
		switch m := h.Masks[s.Mask]; {
		case m.Window > 0:
			kinds += "w"
		case m.Chunk > 0:
			kinds += "c"
		default:
			kinds += "f"
		}
		switch s.Rope {
		case arch.NoRope:
			kinds += "n"
		case 1:
			kinds += "s"
		}
	}
	return kinds
}

// Files of Gemma and of its like are read whole: layers have the windows, ropes and scales that their keys and the architecture give them.
func TestGemmas(t *testing.T) {
	for _, c := range []struct {
		name, kinds                 string
		embedding, cap, logits, att float64
	}{
		{"gemma", "fff", 8, 0, 0, 1 / math.Sqrt(32)},
		{"gemma2", "wfwf", 8, 50, 30, 1 / math.Sqrt(32)},
		{"gemma3", "wswswswswsf", 8, 0, 0, 1 / math.Sqrt(32)},
		{"gemma4", "wswswswswsf", 8, 0, 0, 1},
		{"gemma4-moe", "wswswswswsf", 8, 0, 0, 1},
		{"llama4", "cccfn", 1, 0, 0, 0.25},
		{"afmoe", "www", 8, 0, 0, 1 / math.Sqrt(128)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := arch.Read(converted(t, c.name))
			if err != nil {
				t.Fatal(err)
			}
			if got := layerKinds(h); got != c.kinds {
				t.Errorf("layers: got %s, wanted %s", got, c.kinds)
			}
			for _, n := range []struct {
				what      string
				got, want float64
			}{
				{"factor of embeddings", float64(h.EmbeddingScale), c.embedding}, {"bound of scores", float64(h.AttentionSoftCap), c.cap},
				{"bound of logits", float64(h.LogitSoftCap), c.logits}, {"factor of scores", float64(h.AttentionScale), c.att},
			} {
				if math.Abs(n.got-n.want) > 1e-6 {
					t.Errorf("%s: got %g, wanted %g", n.what, n.got, n.want)
				}
			}
			if len(h.Notes) > 0 {
				t.Errorf("notes %q", h.Notes)
			}
		})
	}
}

// The largest Gemma 2 and 3, which only their number of layers tells, have scores of another factor; a file that says the factor is believed.
func TestGemmaScales(t *testing.T) {
	m := converted(t, "gemma2")
	for _, scale := range []float32{0.5, 0} {
		h, err := arch.Read(withKey(t, m, "gemma2.attention.scale", scale))
		if err != nil {
			t.Fatal(err)
		}
		want := scale
		if scale == 0 {
			want = float32(1 / math.Sqrt(32))
		}
		if h.AttentionScale != want {
			t.Errorf("scale %g: got %g, wanted %g", scale, h.AttentionScale, want)
		}
	}
}

// Values of Gemma 4 are normalised keys where the layer has no matrix for values: they are copied before the norm and the rope of keys.
func TestGemma4Values(t *testing.T) {
	m := converted(t, "gemma4")
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	ops := h.Layer(5, func(tensor string) bool { return m.Has(tensor) && !strings.Contains(tensor, "attn_v") })
	copied := slices.IndexFunc(ops, func(o arch.Op) bool {
		return o.Kind == arch.HeadCopy && o.Dst == arch.V && o.A == arch.K && o.Heads == 2 && o.Cols == 64
	})
	changed := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.RMSNorm && o.Dst == arch.K })
	if copied < 0 || changed < copied {
		t.Errorf("copy %d, norm of keys %d", copied, changed)
	}
	if windowed, full := h.Layers[0], h.Layers[5]; windowed.KeyLength != 32 || full.KeyLength != 64 || h.Ropes[1].Dim != 32 || h.Ropes[0].Dim != 64 {
		t.Errorf("heads of %d and %d values, %d and %d of them turned", windowed.KeyLength, full.KeyLength, h.Ropes[1].Dim, h.Ropes[0].Dim)
	}
	if h.Ropes[0].Factors == nil || h.Ropes[1].Factors != nil {
		t.Error("factors of rope are not those of full layers alone")
	}
}

// Queries of Llama 4's layers without rope grow by steps with their position.
func TestGrowingQueries(t *testing.T) {
	h, err := arch.Read(converted(t, "llama4"))
	if err != nil {
		t.Fatal(err)
	}
	for position, want := range map[int]float64{0: 1, 8190: 1, 8191: 1 + 0.1*math.Log(2), 16383: 1 + 0.1*math.Log(3)} {
		if got := h.RowScale.At(position); got != float32(want) {
			t.Errorf("position %d: got %g, wanted %g", position, got, want)
		}
	}
}

// Keys that the converter does not write, but that say what the model is, are believed.
func TestKeysOfFewFiles(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		want      string // layerKinds, then the factor of embeddings and the length of chunks
	}{
		{"llama4", "attention.chunk_size", uint32(16), "cccfn 1 16"},
		{"llama4", "attention.sliding_window", uint32(0), "ffff 1 0"},
		{"afmoe", "embedding_scale", float32(1), "www 1 0"},
		{"afmoe", "attention.sliding_window_pattern", uint32(3), "wwfn 8 0"},
	} {
		h, err := arch.Read(withKey(t, converted(t, c.name), c.name+"."+c.key, c.value))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(layerKinds(h), " ", h.EmbeddingScale, " ", h.Masks[len(h.Masks)-1].Chunk); got != c.want {
			t.Errorf("%s: %s: got %s, wanted %s", c.name, c.key, got, c.want)
		}
	}
}
