package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExp: it is math.Exp, closely enough that no choice tells them apart.
func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	check := func(x float64) {
		t.Helper()
		got, want := exp(x), math.Exp(x)
		if !(math.Abs(got-want) <= 1e-12*want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("exp(%g) = %g, want %g", x, got, want)
		}
	}
	for _, x := range []float64{0, math.Copysign(0, -1), -1e-300, -math.Ln2, -1, -699.999999, -700, -708.5, -745, -746, -1e300, math.Inf(-1), math.NaN()} {
		check(x)
	}
	for range 200000 {
		check(-rng.ExpFloat64() * 10)
		check(-750 * rng.Float64())
	}
	for k := range 3 * expSteps { // between two steps of the table, and on them
		check(-float64(k) * math.Ln2 / expSteps)
		check(-(float64(k) + 0.5) * math.Ln2 / expSteps)
	}
}
