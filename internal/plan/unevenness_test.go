package plan

import "testing"

// TestUnevennessOfCached: a unit of slots has no block, so it doesn't count with the units of block 0.
func TestUnevennessOfCached(t *testing.T) {
	p := &Plan{Blocks: []int64{10, 10}, Units: []Unit{{Tier: VRAM}, {Tier: Cached}, {Tier: VRAM, Block: 1}}}
	for i, bytes := range []int64{10, 100, 10} {
		p.Units[i].Bytes = bytes
	}
	first, last := p.unevenness(p.streamed(), 0), p.unevenness(p.streamed(), 1)
	if first != last {
		t.Errorf("a plan that is the same from both ends: %g for its first block, %g for its last", first, last)
	}
}
