package sample

import (
	"math"
	"testing"
)

func TestGreedyTakesTheLargest(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		logits []float32
		want   int32
	}{
		{"plain", []float32{1, 3, 2}, 1},
		{"lowest among equals", []float32{0, 5, 5}, 1},
		{"not a number first", []float32{nan, -2, -1}, 2},
		{"not a number last", []float32{-2, -1, nan}, 1},
	} {
		if got, err := New(Params{}).Next(c.logits); err != nil || got != c.want {
			t.Errorf("%s: got %d, error %v; wanted %d", c.name, got, err, c.want)
		}
	}
}

func TestNextRefuses(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, logits := range map[string][]float32{"none": nil, "all NaN": {float32(math.NaN())}, "infinite": {1, inf}} {
		for _, temperature := range []float64{0, 1} {
			if id, err := New(Params{Temperature: temperature}).Next(logits); err == nil {
				t.Errorf("%s at temperature %g: got id %d", name, temperature, id)
			}
		}
	}
	for _, p := range []Params{{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}} {
		if p.Validate() == nil {
			t.Errorf("temperature %g was accepted", p.Temperature)
		}
	}
}

// TestFrequencies: tokens come as often as the softmax of their logits says.
func TestFrequencies(t *testing.T) {
	logits := []float32{1, 0, float32(math.Inf(-1)), 2}
	for _, temperature := range []float64{0.5, 1, 2} {
		const n = 20000
		counts := make([]float64, len(logits))
		s := New(Params{Temperature: temperature, Seed: 42})
		for range n {
			id, err := s.Next(logits)
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
		}
		var sum float64
		for _, l := range logits {
			sum += math.Exp(float64(l) / temperature)
		}
		for i, l := range logits {
			p := math.Exp(float64(l)/temperature) / sum
			if sigma := math.Sqrt(p * (1 - p) / n); math.Abs(counts[i]/n-p) > 5*sigma {
				t.Errorf("temperature %g: token %d came in %.4f of the draws, wanted %.4f", temperature, i, counts[i]/n, p)
			}
		}
	}
}
