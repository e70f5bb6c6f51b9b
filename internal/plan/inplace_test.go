package plan

import (
	"testing"

	"leat/decompose/pack"
)

// TestLayAsOnDisk: an extent stands as far behind a block in memory as on disk, tensors
// keep their place in it, and one that no kernel can read there is refused.
func TestLayAsOnDisk(t *testing.T) {
	u := pack.Unit{
		Tensors: []pack.Tensor{{Name: "a", Off: 4096 + 32, Bytes: 500}, {Name: "b", Off: 4096 + 544, UnitOff: 512, Bytes: 256}, {Name: "c", Off: 64, UnitOff: 768, Bytes: 9000}},
		Extents: []pack.Extent{{Off: 4096 + 32, Bytes: 768}, {Off: 64, UnitOff: 768, Bytes: 9000}},
		Bytes:   9984,
	}
	before := u.Tensors[1].UnitOff
	kept := u.Tensors
	if !layAsOnDisk(&u) {
		t.Fatal("refused")
	}
	if kept[1].UnitOff != before {
		t.Error("the model's own unit was changed")
	}
	for i, want := range []int64{32, 544, 4096 + 64} {
		if u.Tensors[i].UnitOff != want {
			t.Errorf("tensor %s is at %d, wanted %d", u.Tensors[i].Name, u.Tensors[i].UnitOff, want)
		}
	}
	if u.Extents[0].UnitOff != 32 || u.Extents[1].UnitOff != 4096+64 || u.Bytes != 4096+3*4096 {
		t.Errorf("extents %+v, %d bytes", u.Extents, u.Bytes)
	}
	u.Tensors[2].Off, u.Extents[1].Off = 72, 72
	if layAsOnDisk(&u) {
		t.Error("a tensor at 72 was accepted")
	}
}

func TestHeadGroup(t *testing.T) {
	for rowBytes, want := range map[int64]int64{4096: 4, 210: 8, 17: 16, 12: 4, 18: 8, 34: 8} {
		if got := headGroup(rowBytes); got != want {
			t.Errorf("rows of %d bytes: %d at a time, wanted %d", rowBytes, got, want)
		}
	}
}
