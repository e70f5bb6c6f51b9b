package selftest

import "leat/gguf"

// sweepRows is how far drivers are known to fail at single numbers of rows.
const sweepRows = 512

// Sweep returns products and attention at every number of rows from 1 to 512: drivers are known that give NaN at some.
func Sweep() []Case {
	var cases []Case
	for n := 1; n <= sweepRows; n++ {
		cases = append(cases, MulMatHalves(gguf.Q4_K, 65, 256, n, 0, 0))
		if n <= 144 || n%16 <= 1 || n%16 == 15 { // its reference grows with the square
			cases = append(cases, AttnRun(gguf.F16, AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 64, Page: 32}, n, 0))
		}
	}
	return cases
}
