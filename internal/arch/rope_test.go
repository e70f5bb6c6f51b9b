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
	for _, c := range []struct {
		name   string
		r      Rope
		want   []float64
		mscale float64
	}{
		{"plain", plain, []float64{1, 0.1, 0.01, 0.001}, 1},
		{"linear", linear, []float64{0.25, 0.025, 0.0025, 0.00025}, 1},
		{"factors", factors, []float64{1, 0.1, 0.0025, 0.000125}, 1},
		{"yarn", yarn, yarnWant, 1.138629436111989},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, mscale := c.r.Freqs()
			if len(got) != len(c.want) || !close(mscale, c.mscale, 1e-12) {
				t.Fatalf("got %d frequencies and scale %g, wanted %d and %g", len(got), mscale, len(c.want), c.mscale)
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
	freqs, mscale := r.Freqs()
	position := 1_000_003
	got := make([]float32, 2)
	if err := r.Table(got, freqs, mscale, []int{position}); err != nil {
		t.Fatal(err)
	}
	sin, cos := math.Sincos(float64(position))
	if got[0] != float32(cos) || got[1] != float32(sin) {
		t.Errorf("position %d: got %v, wanted %v %v", position, got, cos, sin)
	}
	if err := r.Table(got, freqs, mscale, []int{1, 2}); err == nil {
		t.Error("a table too small for its positions was filled")
	}
}

var yarnWant = []float64{1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625, 0.0013834964763236657, 0.00025, 7.905694150420948e-05}
