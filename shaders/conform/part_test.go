package conform

import "testing"

// By turns, all cases run: each seed has its part.
func TestPartsAreAll(t *testing.T) {
	defer func(n int) { inParts = n }(inParts)
	inParts = 5
	cases := Cases()
	ran := map[string]bool{}
	for seed := range uint64(25) {
		some := parts(cases, seed)
		if n := len(some); n < len(cases)/50 || n > len(cases)/4 {
			t.Errorf("seed %d: %d of %d cases", seed, n, len(cases))
		}
		for _, c := range some {
			ran[c.String()] = true
		}
	}
	for _, c := range cases {
		if !ran[c.String()] {
			t.Errorf("%s: no turn runs it", &c)
		}
	}
}
