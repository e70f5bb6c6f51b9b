package step

import (
	"slices"
	"testing"

	"leat/internal/arch"
	"leat/internal/kv"
)

// Rows of two sequences see what the mask lets them see of their own sequence, up to its last row.
func TestPutSeen(t *testing.T) {
	one, other := new(kv.Sequence), new(kv.Sequence)
	var rows []Row
	for _, pos := range []int{0, 1, 2} {
		rows = append(rows, NewRow(rows, one, 0, pos, Prompt))
	}
	for _, pos := range []int{7, 8} {
		rows = append(rows, NewRow(rows, other, 0, pos, Prompt))
	}
	for _, c := range []struct {
		name string
		mask arch.Mask
		want []uint32
	}{
		{"causal", arch.Mask{}, []uint32{0, 0, 0, 1, 0, 2, 0, 7, 0, 8}},
		{"window", arch.Mask{Window: 2}, []uint32{0, 0, 0, 1, 1, 2, 6, 7, 7, 8}},
		{"all", arch.Mask{All: true}, []uint32{0, 2, 0, 2, 0, 2, 0, 8, 0, 8}},
	} {
		bytes := make([]byte, 8*len(rows))
		putSeen(bytes, &c.mask, rows)
		var got []uint32
		for ; len(bytes) > 0; bytes = bytes[4:] {
			got = append(got, le.Uint32(bytes))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: rows see %v, want %v", c.name, got, c.want)
		}
	}
}
