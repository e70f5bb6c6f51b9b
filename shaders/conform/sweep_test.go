package conform

import "testing"

// Some of the sweep; leat doctor --full runs all of it.
func TestSweep(t *testing.T) {
	s := newSuite(t, 1)
	cases := Sweep()
	var some []Case
	for i := 0; i < len(cases); i += 23 {
		some = append(some, cases[i])
	}
	sorted, order := byKernel(some)
	for _, kernel := range order {
		t.Run(kernel, func(t *testing.T) { runCases(t, s, sorted[kernel], func(Result) {}) })
	}
	if n := len(cases); n < sweepRows {
		t.Errorf("%d cases, want one for each number of rows at least", n)
	}
}
