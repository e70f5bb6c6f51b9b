package arch

import (
	"math"
	"testing"
)

func close(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(b) }

func TestFreqs(t *testing.T) {
	plain := Rope{Dim: 8, Base: 10000, Scale: 1, AttnFactor: 1}
	linear := plain
	linear.Scale = 0.25
	factors := plain
	factors.Factors = []float32{1, 1, 4, 8}
	// The values for YaRN come from the paper's formulas, computed on their own.
	yarn := Rope{Dim: 16, Base: 10000, Scale: 0.25, ExtFactor: 1, AttnFactor: 1, BetaFast: 32, BetaSlow: 1, OrigContext: 2048}
	longRope := factors
	longRope.Long, longRope.OrigContext = []float32{1, 2, 8, 10}, 4096
	for _, c := range []struct {
		name    string
		r       Rope
		context int
		want    []float64
	}{
		{"plain", plain, 4096, []float64{1, 0.1, 0.01, 0.001}},
		{"linear", linear, 4096, []float64{0.25, 0.025, 0.0025, 0.00025}},
		{"factors", factors, 4096, []float64{1, 0.1, 0.0025, 0.000125}},
		{"yarn", yarn, 4096, yarnWant},
		{"short context", longRope, 4096, []float64{1, 0.1, 0.0025, 0.000125}},
		{"long context", longRope, 4097, []float64{1, 0.05, 0.00125, 0.0001}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.r.Freqs(c.context)
			if len(got) != len(c.want) {
				t.Fatalf("got %d frequencies, wanted %d", len(got), len(c.want))
			}
			for i := range got {
				if !close(got[i], c.want[i], 1e-12) {
					t.Errorf("pair %d: got %g, wanted %g", i, got[i], c.want[i])
				}
			}
		})
	}
}

// Angles far beyond what float32 holds exactly must keep their fraction of a turn.
func TestTablePrecision(t *testing.T) {
	r := Rope{Dim: 2, Base: 10000, Scale: 1, AttnFactor: 1}
	freqs := r.Freqs(1 << 20)
	position := 1_000_003
	got := make([]float32, 2)
	if err := r.Table(got, freqs, []int{position}); err != nil {
		t.Fatal(err)
	}
	sin, cos := math.Sincos(float64(position))
	if got[0] != float32(cos) || got[1] != float32(sin) {
		t.Errorf("position %d: got %v, wanted %v %v", position, got, cos, sin)
	}
	if err := r.Table(got, freqs, []int{1, 2}); err == nil {
		t.Error("a table too small for its positions was filled")
	}
}

var yarnWant = []float64{1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625, 0.0013834964763236657, 0.00025, 7.905694150420948e-05}

// YaRN's factor of rotated values is its attention temperature, or what the file says instead of it. DeepSeek's and Mistral's files say by which temperature it is divided.
func TestYaRNTemperature(t *testing.T) {
	yarn := []any{"rope.scaling.type", "yarn", "rope.scaling.factor", float32(8), "rope.scaling.original_context_length", 16}
	log8 := math.Log(8)
	for _, c := range []struct {
		name   string
		more   []any
		want   float64 // factor of the first rope
		scores float64 // factor of attention's scores, beside that of the size of heads
	}{
		{"qwen2", nil, 1 + 0.1*log8, 1},
		{"qwen2", []any{"rope.scaling.attn_factor", float32(0.5)}, 0.5 * (1 + 0.1*log8), 1},
		{"olmo2", []any{"rope.scaling.yarn_attn_factor", float32(1.25)}, 1.25, 1},
		{"olmo2", []any{"rope.scaling.yarn_attn_factor", float32(1)}, 1, 1},
		{"qwen2", []any{"rope.scaling.factor", float32(0.5)}, 1, 1},
		{"qwen2", []any{"rope.scaling.type", "linear", "rope.scaling.yarn_attn_factor", float32(2)}, 1, 1},
		{"mistral3", []any{"rope.scaling.yarn_log_multiplier", float32(0.5)}, (1 + 0.1*log8) / (1 + 0.05*log8), 1},
		{"llama", []any{"rope.scaling.yarn_log_multiplier", float32(1)}, 1, 1},
		{"deepseek2", []any{"rope.scaling.yarn_log_multiplier", float32(0.0707)}, 1, math.Pow(1+0.0707*log8, 2)},
	} {
		_, h, err := hyper(metadata(t, c.name, sound(c.name), append(yarn[:len(yarn):len(yarn)], c.more...)...), c.name)
		if err != nil {
			t.Fatal(err)
		}
		size := h.Layers[0].KeyLength
		if h.Latent.Rank > 0 {
			size = h.Latent.KeyLength
		}
		if got, scores := h.Ropes[0].AttnFactor, float64(h.AttentionScale)*math.Sqrt(float64(size)); !close(got, c.want, 1e-6) || !close(scores, c.scores, 1e-6) {
			t.Errorf("%s %v: got %g, and %g of scores, wanted %g and %g", c.name, c.more, got, scores, c.want, c.scores)
		}
	}
}

// Layers of OLMo 3 with a window are rotated without YaRN, the others with it.
func TestWindowsWithoutYaRN(t *testing.T) {
	_, h, err := hyper(metadata(t, "olmo2", sound("olmo2"), "rope.scaling.type", "yarn", "rope.scaling.factor", float32(8), "rope.scaling.original_context_length", 16,
		"rope.scaling.yarn_attn_factor", float32(1.2), "attention.sliding_window", 8), "olmo2")
	if err != nil {
		t.Fatal(err)
	}
	plain := Rope{Dim: 32, Base: 10000, Scale: 1, AttnFactor: 1}
	for l, windowed := range []bool{true, true, true, false} {
		r := &h.Ropes[h.Layers[l].Rope]
		same := close(r.AttnFactor, 1, 1e-9)
		for i, f := range r.Freqs(64) {
			same = same && close(f, plain.Freqs(64)[i], 1e-9)
		}
		if same != windowed || h.Windowed(l) != windowed {
			t.Errorf("layer %d: rope %+v", l, r)
		}
	}
}
