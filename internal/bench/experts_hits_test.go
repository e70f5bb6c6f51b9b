package bench

import "testing"

// A row is predicted for the repetition whose speed it
// shows: the first one still brings experts that the others find.
func TestFound(t *testing.T) {
	x := &Experts{Hits: 70, HostMisses: 20, DiskMisses: 10, Uploaded: 1000, Read: 250}
	if f := x.ExpertHits(); f.HitRate != 0.7 || f.DiskShare != 0.25 {
		t.Errorf("found %+v", f)
	}
	if f := (&Experts{HostMisses: 1}).ExpertHits(); f.HitRate != 0 || f.DiskShare != 0 {
		t.Errorf("nothing was in VRAM: %+v", f)
	}
	each := []*Experts{{Hits: 1}, {Hits: 2}, {Hits: 3}}
	if got := typicalOf([]float64{219, 297, 296}, each); got != each[2] {
		t.Errorf("the median is of %+v", got)
	}
	if got := typicalOf([]float64{219, 297}, each[:2]); got != nil {
		t.Errorf("no repetition has the median of two: %+v", got)
	}
	if got := typicalOf(nil, nil); got != nil {
		t.Errorf("of none: %+v", got)
	}
}
