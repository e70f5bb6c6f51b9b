package conform

import (
	"testing"

	"leat/internal/selftest"
)

// Some of the sweep; leat doctor --full runs all of it.
func TestSweep(t *testing.T) {
	s, _ := openRunner(t, 1)
	cases := selftest.Sweep()
	var some []selftest.Case
	for i := 0; i < len(cases); i += 23 {
		some = append(some, cases[i])
	}
	sorted, order := byKernel(some)
	for _, kernel := range order {
		t.Run(kernel, func(t *testing.T) { runCases(t, s, sorted[kernel], func(selftest.Result) {}) })
	}
	if n := len(cases); n < 512 {
		t.Errorf("%d cases, want one for each number of rows at least", n)
	}
}
