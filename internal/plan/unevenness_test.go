package plan

import "testing"

// TestUnevennessOfCached: a unit of slots has no block, whatever its field Block says, so it counts with the units of none.
func TestUnevennessOfCached(t *testing.T) {
	p := &Plan{Blocks: []int64{10, 10, 30}, Units: []Unit{{Tier: VRAM}, {Tier: Cached}, {Tier: VRAM, Block: 1}, {Tier: VRAM, Block: 2}}}
	for i, bytes := range []int64{10, 100, 10, 30} {
		p.Units[i].Bytes = bytes
	}
	want := p.unevenness(p.streamed(), 0)
	p.Units[1].Block = 1
	if got := p.unevenness(p.streamed(), 0); got != want {
		t.Errorf("found %g, wanted %g: the unit of slots counts with a block", got, want)
	}
}
