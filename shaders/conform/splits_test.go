package conform

import "testing"

// A split that asks for more is replaced by another, and nobody would see that it was not tested.
func TestSplitsFit(t *testing.T) {
	for _, s := range testSplits {
		if n := s.SharedBytes(); n > 32<<10 {
			t.Errorf("split %v takes %d bytes of shared memory, wanted 32 KiB at most", s, n)
		}
	}
}
