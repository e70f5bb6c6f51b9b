package arch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/tools/golden/tiny"
)

// Layers with a window differ from those without in heads, ropes and sinks.
func TestWindowedKinds(t *testing.T) {
	for name, want := range map[string]string{"mimo2-nano": "fwswsf", "step35-nano": "fwswsf", "exaone-moe-nano": "wwwfn"} {
		h, err := arch.Read(nano(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := layerKinds(h); got != want {
			t.Errorf("%s: got %s, wanted %s", name, got, want)
		}
	}
	mimo, err := arch.Read(nano(t, "mimo2-nano"))
	if err != nil {
		t.Fatal(err)
	}
	for l, s := range mimo.Layers {
		kv := 1
		if mimo.Windowed(l) {
			kv = 2
		}
		if s.HeadCountKV != kv || s.KeyLength != 24 || s.ValueLength != 16 || s.Sinks != mimo.Windowed(l) || s.Experts != (l > 0) {
			t.Errorf("layer %d of mimo2: %+v", l, s)
		}
	}
	step, err := arch.Read(nano(t, "step35-nano"))
	if err != nil {
		t.Fatal(err)
	}
	full, near := step.Ropes[0], step.Ropes[1]
	if full.Dim != 8 || len(full.Factors) != 4 || near.Dim != 16 || near.Factors != nil || full.Base != 5e6 || near.Base != 1000 {
		t.Errorf("ropes of step35: %+v and %+v", full, near)
	}
	if step.Layers[0].HeadCount != 4 || step.Layers[1].HeadCount != 6 || step.Layers[2].Bounds.Experts != 0.5 || step.Layers[0].Bounds.FFN != 0.5 {
		t.Errorf("layers of step35: %+v", step.Layers)
	}
}

// more is a model of tools/golden with further tensors of float32, all of the same values.
func more(t *testing.T, name string, values []byte, tensors ...string) *pack.Model {
	t.Helper()
	var b bytes.Buffer
	if err := tiny.Write(&b, name); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(t.TempDir(), "from.gguf"), filepath.Join(t.TempDir(), "to.gguf")
	if err := os.WriteFile(from, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []gguf.WriteTensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		raw, err := f.ReadTensor(x)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, gguf.WriteTensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: bytes.NewReader(raw)})
	}
	for _, tensor := range tensors {
		all = append(all, gguf.WriteTensor{Name: tensor, Type: gguf.F32, Shape: []int64{int64(len(values) / 4)}, Data: bytes.NewReader(values)})
	}
	b.Reset()
	if err := gguf.Write(&b, f.Metadata, all, gguf.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// LongRoPE's factors come in two tensors; one of them alone, both beside those of Llama 3, and factors of another number are refused.
func TestLongRoPE(t *testing.T) {
	two := bytes.Repeat([]byte{0, 0, 0, 0x40}, 8) // 2.0 for each of the 8 pairs
	h, err := arch.Read(more(t, "phimoe-nano", two, arch.RopeShort, arch.RopeLong))
	if err != nil {
		t.Fatal(err)
	}
	if r := h.Ropes[0]; len(r.Factors) != 8 || len(r.Long) != 8 || r.Factors[7] != 2 || r.Long[0] != 2 {
		t.Errorf("rope %+v", r)
	}
	for what, m := range map[string]*pack.Model{
		"short factors alone":  more(t, "phimoe-nano", two, arch.RopeShort),
		"long factors alone":   more(t, "phimoe-nano", two, arch.RopeLong),
		"two factors too few":  more(t, "phimoe-nano", two[:24], arch.RopeShort, arch.RopeLong),
		"factors of 0":         more(t, "phimoe-nano", make([]byte, 32), arch.RopeShort, arch.RopeLong),
		"all kinds of factors": more(t, "phimoe-nano", two, arch.RopeShort, arch.RopeLong, arch.RopeFreqs),
	} {
		if _, err := arch.Read(m); err == nil {
			t.Errorf("%s: loads", what)
		}
	}
	if _, err := arch.Read(withKey(t, nano(t, "phimoe-nano"), "phimoe.rope.scaling.type", "longrope")); err == nil {
		t.Error("longrope without factors: loads")
	}
}
