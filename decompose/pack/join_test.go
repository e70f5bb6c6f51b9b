package pack

import (
	"testing"

	"leat/gguf"
)

// Experts put together are few reads, and every slice is where the file has it.
func TestJoin(t *testing.T) {
	m := realModel(t, "qwen3moe-tiny-q4_k_m.gguf")
	experts := m.Experts(1)
	for _, c := range []struct {
		name              string
		from, to, extents int
	}{
		{"all", 0, 8, 2}, {"one", 3, 4, 3}, {"some", 2, 7, 3}, // the router lies between two of the stacks
	} {
		t.Run(c.name, func(t *testing.T) {
			u := Join("experts", experts[c.from:c.to])
			if u.Kind != Experts || u.Layer != 1 || u.Expert != c.from || len(u.Tensors) != 3*(c.to-c.from) || len(u.Extents) != c.extents {
				t.Fatalf("got %v layer %d expert %d, %d tensors, %d reads; wanted experts of layer 1 from %d on, %d, %d",
					u.Kind, u.Layer, u.Expert, len(u.Tensors), len(u.Extents), c.from, 3*(c.to-c.from), c.extents)
			}
			whole := make([]byte, u.Bytes)
			if err := m.ReadUnit(&u, whole); err != nil {
				t.Fatal(err)
			}
			for i := range u.Tensors {
				slice := &u.Tensors[i]
				if slice.UnitOff%sliceAlign != 0 {
					t.Errorf("%s of expert %d: at %d, wanted a multiple of %d", slice.Name, slice.Expert, slice.UnitOff, sliceAlign)
				}
				own := &experts[slice.Expert]
				of, ok := own.Tensor(slice.Name)
				if !ok {
					t.Fatalf("expert %d has no %s", slice.Expert, slice.Name)
				}
				alone := make([]byte, own.Bytes)
				if err := m.ReadUnit(own, alone); err != nil {
					t.Fatal(err)
				}
				if string(whole[slice.UnitOff:][:slice.Bytes]) != string(alone[of.UnitOff:][:of.Bytes]) {
					t.Errorf("%s of expert %d: other bytes", slice.Name, slice.Expert)
				}
			}
		})
	}
}

// Slices whose size is no multiple of 16 begin where a kernel can read them all the same.
func TestJoinOdd(t *testing.T) {
	var experts []Unit
	for e := range 3 {
		u := Unit{Kind: Experts, Expert: e, Tensors: []Tensor{{Name: "g", Type: gguf.Q6_K, Bytes: 210, Off: 4096 + int64(210*e)}}}
		experts = append(experts, u)
	}
	u := Join("odd", experts)
	for i, want := range []int64{0, 256, 512} {
		if u.Tensors[i].UnitOff != want {
			t.Errorf("slice %d at %d, wanted %d", i, u.Tensors[i].UnitOff, want)
		}
	}
	if len(u.Extents) != 3 || u.Bytes != 768 {
		t.Errorf("%d reads, %d bytes; wanted 3, 768", len(u.Extents), u.Bytes)
	}
	far := []Unit{{Kind: Experts, Tensors: []Tensor{{Name: "g", Bytes: 64, Off: 0}}}, {Kind: Experts, Expert: 1, Tensors: []Tensor{{Name: "g", Bytes: 64, Off: 64 + FileAlign + 16}}}}
	if u := Join("far", far); u.Tensors[1].UnitOff != TensorAlign {
		t.Errorf("a slice far behind the other at %d, wanted %d: what lies between is not read", u.Tensors[1].UnitOff, TensorAlign)
	}
}
