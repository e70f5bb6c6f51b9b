package pack_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/tools/testdata"
)

// A view's layers are other layers' bytes under their own names.
func TestView(t *testing.T) {
	m, err := pack.Open(filepath.Join(testdata.Root(t), "cmd", "leat", "demo", "leat-demo-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	second, _ := m.Unit(pack.Layer, 1)
	embed, _ := m.Unit(pack.Embed, -1)
	few := embed.Rows(0, 8)
	v, err := m.View([]pack.Unit{few, second.AsLayer(0), second.AsLayer(1)})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, second.Bytes)
	if err := m.ReadUnit(second, want); err != nil {
		t.Fatal(err)
	}
	for l := range 2 {
		u, ok := v.Unit(pack.Layer, l)
		if !ok {
			t.Fatalf("layer %d is missing", l)
		}
		got := make([]byte, u.Bytes)
		if err := v.ReadUnit(u, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("layer %d: %v, or other bytes", l, err)
		}
	}
	x, u, ok := v.Tensor("blk.0.attn_q.weight")
	if !ok || u.Layer != 0 {
		t.Fatalf("blk.0.attn_q.weight: %v, %+v", ok, u)
	}
	if y, _, _ := m.Tensor("blk.1.attn_q.weight"); x.Off != y.Off || x.File != y.File {
		t.Errorf("at %d, wanted the second layer's %d", x.Off, y.Off)
	}
	if x, _, _ := m.Tensor("blk.0.attn_q.weight"); x.Name != "blk.0.attn_q.weight" {
		t.Errorf("the model itself has changed: %q", x.Name)
	}
	if x, _, ok := v.Tensor("token_embd.weight"); !ok || x.Shape[0] != 8 {
		t.Errorf("the embedding has %v rows, wanted 8", x)
	}
	if _, err := m.View([]pack.Unit{second.AsLayer(3), second.AsLayer(3)}); err == nil {
		t.Error("a tensor stands twice, and nobody minds")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.ReadUnit(second, want); err != nil {
		t.Errorf("closing the view closed the model: %v", err)
	}
}
