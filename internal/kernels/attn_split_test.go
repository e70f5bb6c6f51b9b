package kernels

import "testing"

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
