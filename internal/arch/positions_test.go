package arch

import (
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
)

// Learned positions limit the context, and their tensor has a type that its kernel reads.
func TestReadPositions(t *testing.T) {
	m, err := new(pack.Model).View([]pack.Unit{{Kind: pack.Global, Layer: -1, Expert: -1, Tensors: []pack.Tensor{
		{Name: "long.weight", Type: gguf.F16, Shape: []int64{96, 8}}, {Name: "short.weight", Type: gguf.F32, Shape: []int64{64, 8}},
		{Name: "bytes.weight", Type: gguf.Q8_0, Shape: []int64{64, 8}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(names ...string) (*Hyper, error) {
		h := &Hyper{ContextLength: 80}
		ops := []Op{{Kind: Bias, Weight: "bytes.weight"}}
		for _, name := range names {
			ops = append(ops, Op{Kind: AddRows, Weight: name + ".weight"})
		}
		return h, (&binding{h: h, m: m}).readPositions(ops)
	}
	for names, want := range map[string][2]int{"": {0, 80}, "absent": {0, 80}, "long": {96, 80}, "short": {64, 64}, "long short": {64, 64}, "short long": {64, 64}} {
		h, err := read(strings.Fields(names)...)
		if err != nil || h.Positions != want[0] || h.ContextLength != want[1] {
			t.Errorf("%q: found %d positions, context %d, error %v; wanted %v", names, h.Positions, h.ContextLength, err, want)
		}
	}
	if _, err := read("bytes"); err == nil || err.Error() != "tensor bytes.weight of type Q8_0 is not supported" {
		t.Errorf("of bytes: error %v", err)
	}
}
