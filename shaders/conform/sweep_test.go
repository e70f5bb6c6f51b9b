package conform

import "testing"

// Some of the sweep; leat doctor --full runs all of it.
func TestSweep(t *testing.T) {
	s := newSuite(t, 1)
	cases := Sweep()
	for i := 0; i < len(cases); i += 23 {
		if _, err := s.Run(t.Context(), &cases[i]); err != nil {
			t.Error(err)
		}
	}
	if n := len(cases); n < sweepRows {
		t.Errorf("%d cases, want one for each number of rows at least", n)
	}
}
