package arch

import (
	"math"
	"slices"
	"testing"
)

// Each mask, where its bounds begin to matter.
func TestMaskSeen(t *testing.T) {
	for _, c := range []struct {
		name        string
		mask        Mask
		pos, end    int
		first, last int
	}{
		{"own and before", Mask{}, 7, 9, 0, 7},
		{"window of one", Mask{Window: 1}, 7, 9, 7, 7},
		{"window", Mask{Window: 3}, 7, 9, 5, 7},
		{"window as long as the sequence", Mask{Window: 8}, 7, 9, 0, 7},
		{"longer window", Mask{Window: 9}, 7, 9, 0, 7},
		{"last of a chunk", Mask{Chunk: 4}, 7, 9, 4, 7},
		{"first of a chunk", Mask{Chunk: 4}, 8, 9, 8, 8},
		{"first chunk", Mask{Chunk: 100}, 7, 9, 0, 7},
		{"around", Mask{Around: 2}, 5, 9, 3, 7},
		{"around the first", Mask{Around: 2}, 1, 9, 0, 3},
		{"around the last", Mask{Around: 2}, 8, 9, 6, 9},
		{"all", Mask{All: true}, 3, 9, 0, 9},
	} {
		first, last := c.mask.Seen(c.pos, c.end)
		if first != c.first || last != c.last {
			t.Errorf("%s: sees %d to %d, want %d to %d", c.name, first, last, c.first, c.last)
		}
		if w := c.mask.Width(); w > 0 && last-first+1 > w || w == 0 && first > 0 {
			t.Errorf("%s: sees %d to %d, more than its width of %d", c.name, first, last, w)
		}
		if last > c.pos && !c.mask.Ahead() {
			t.Errorf("%s: sees position %d behind its own, %d, and Ahead denies it", c.name, last, c.pos)
		}
	}
}

// The slopes of the paper: of 8 heads 1/2 to 1/256; of 12, the same and every second one of 16 heads.
func TestSlopes(t *testing.T) {
	h := Hyper{ALiBi: 8, Layers: []LayerShape{{HeadCount: 12}}}
	want := []float32{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256}
	for _, power := range []float64{0.5, 1.5, 2.5, 3.5} {
		want = append(want, float32(math.Exp2(-power)))
	}
	if got := h.Slopes(); !slices.Equal(got, want) {
		t.Errorf("slopes %v, want %v", got, want)
	}
	if h.ALiBi = 0; h.Slopes() != nil {
		t.Error("a model without ALiBi has slopes")
	}
}
