package conform

import "testing"

// By turns, all cases run: each seed has its part, and every kernel a case in each.
func TestPartsAreAll(t *testing.T) {
	defer func(n int) { inParts = n }(inParts)
	inParts = 5
	cases, order := byKernel(Cases())
	for _, kernel := range order {
		ran := map[string]bool{}
		for seed := range uint64(25) {
			some := parts(cases[kernel], seed)
			if len(some) == 0 {
				t.Errorf("%s: no case with seed %d", kernel, seed)
			}
			for _, c := range some {
				ran[c.Shape] = true
			}
		}
		if len(ran) != len(cases[kernel]) {
			t.Errorf("%s: of %d cases %d run by turns", kernel, len(cases[kernel]), len(ran))
		}
	}
}
