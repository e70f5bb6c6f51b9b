package kernels

import (
	"testing"

	"leat/shaders"
)

// Teams of lanes fit their subgroups, tiles and pages, and no lane has more than it has registers for.
func TestAttnLanes(t *testing.T) {
	for _, c := range []struct {
		name           string
		lanes          lanes
		key, val, page uint32
		want           attn
		eights         uint32
	}{
		{"128", lanes{32, 8}, 128, 128, 32, attn{share: 16, run: 8}, 1},
		{"64", lanes{32, 8}, 64, 64, 32, attn{share: 8, run: 4}, 1},
		{"256", lanes{32, 8}, 256, 256, 32, attn{share: 32, run: 8}, 1},
		{"no power of two", lanes{32, 8}, 80, 80, 32, attn{share: 16, run: 8}, 1},
		{"small", lanes{32, 8}, 8, 8, 32, attn{share: 4, run: 2}, 1},
		{"keys larger", lanes{32, 8}, 192, 128, 32, attn{share: 16, run: 4}, 2},
		{"keys far larger", lanes{32, 8}, 256, 64, 32, attn{share: 16, run: 4}, 2},
		{"small subgroups", lanes{8, 8}, 128, 128, 32, attn{share: 8, run: 4}, 2},
		{"a CPU", lanes{8, 1}, 256, 256, 32, attn{share: 8, run: 1}, 4},
		{"large subgroups", lanes{64, 8}, 256, 256, 32, attn{share: 32, run: 8}, 1},
		{"too small for such heads", lanes{4, 8}, 256, 256, 32, attn{share: 4, run: 1}, 8},
		{"odd pages", lanes{32, 8}, 128, 128, 5, attn{share: 16, run: 1}, 1},
		{"pages of 12", lanes{32, 8}, 128, 128, 12, attn{share: 16, run: 4}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.group, c.want.keyLen, c.want.valLen = 3, c.key, c.val
			got := c.lanes.attn(3, c.key, c.val, c.page)
			if got != c.want || got.eights() != c.eights {
				t.Errorf("%+v, %d eights, want %+v, %d", got, got.eights(), c.want, c.eights)
			}
		})
	}
}

// There are as many workgroups as the most positions that a row's parts can have need: with a window also for those before it in the part in which it begins.
func TestAttnParts(t *testing.T) {
	for _, c := range []struct {
		name              string
		positions, window uint32
		want              uint64 // workgroups of a row with one head
	}{
		{"one position", 1, 0, 1},
		{"a part", 64, 0, 1},
		{"more than a part", 65, 0, 2},
		{"unknown: two pages of 32 positions", 0, 0, 1},
		{"a window that begins anywhere", 500, 64, 2},
		{"a window of one", 500, 1, 1},
		{"a window of two on both sides of a border", 500, 2, 2},
		{"fewer positions than the window", 3, 64, 1},
	} {
		r := &Recorder{Rows: Rows{Positions: c.positions, Window: c.window}}
		a := shaders.FlashAttnSplitArgs{Rows: 1, Heads: 1, MaxParts: shaders.MaxParts}
		if got := a.Workgroups(1, inParts(r, 2, 32)); got != c.want {
			t.Errorf("%s: %d workgroups, want %d", c.name, got, c.want)
		}
	}
}
