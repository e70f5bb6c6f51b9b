package engine

import "testing"

// TestRelease: text goes out as soon as no stop string can claim it, and never a part
// of one.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		name   string
		stops  []string
		pieces []string
		want   string // all text released, | between pieces
		stop   bool
	}{
		{"no stops", nil, []string{"a", "b"}, "a|b|", false},
		{"within a piece", []string{"END"}, []string{"abENDcd"}, "ab|", true},
		{"across pieces", []string{"END"}, []string{"aE", "N", "Dx"}, "a|||", true},
		{"false alarm", []string{"END"}, []string{"aE", "NE", "x"}, "a|EN|Ex|", false},
		{"two stops", []string{"aab", "b!"}, []string{"aa", "ab", "b"}, "|a|", true},
		{"empty stop", []string{""}, []string{"ab"}, "ab|", false},
	} {
		g := &generation{p: Params{Stop: c.stops}}
		got, stopped := "", false
		for _, p := range c.pieces {
			var out string
			out, stopped = g.release(p)
			got += out + "|"
			if stopped {
				break
			}
		}
		if want := c.want; got != want || stopped != c.stop {
			t.Errorf("%s: got %q, stopped %v; wanted %q, %v", c.name, got, stopped, want, c.stop)
		}
	}
}
