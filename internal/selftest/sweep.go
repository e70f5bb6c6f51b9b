package selftest

import "leat/gguf"

// sweepRows is the largest number of rows that Sweep tests: some drivers fail at single numbers of rows up to it.
const sweepRows = 512

// Sweep returns cases of products and attention with every number of rows from 1 to 512: some drivers give NaN at single numbers of rows.
func Sweep() []Case {
	var cases []Case
	for n := 1; n <= sweepRows; n++ {
		cases = append(cases, MulMatHalves(gguf.Q4_K, 65, 256, n, 0, 0))
		if n <= 144 || n%16 <= 1 || n%16 == 15 { // the time of the reference grows with the square of n
			cases = append(cases, AttnRun(gguf.F16, AttnShape{Heads: 2, HeadsKV: 1, KeyLen: 64, ValLen: 64, Page: 32}, n, 0))
		}
	}
	return cases
}
