package arch

import "testing"

// The wanted factors are 1 + 0.1*log(n), n from 1 on, computed on their own.
func TestRowScale(t *testing.T) {
	s := RowScale{Factor: 0.1, Length: 8192, Offset: 1}
	for _, c := range []struct {
		position int
		want     float64
	}{{0, 1}, {8190, 1}, {8191, 1.0693147180559945}, {16382, 1.0693147180559945}, {16383, 1.1098612288668110}, {131071, 1.2833213344056216}} {
		if got := s.At(c.position); !close(float64(got), c.want, 1e-7) {
			t.Errorf("position %d: got %g, wanted %g", c.position, got, c.want)
		}
	}
	if got := (&RowScale{}).At(1 << 20); got != 1 {
		t.Errorf("no scale: got %g, wanted 1", got)
	}
}
