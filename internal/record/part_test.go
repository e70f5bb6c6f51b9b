package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/golden/tiny"
)

// The parts of one matrix are the matrices that it is made of: operations on them have the same addresses, and are the same otherwise.
func TestPartsOfMatrix(t *testing.T) {
	var b bytes.Buffer
	if err := tiny.Write(&b, "qwen2moe-nano"); err != nil { // its Q, K and V have biases
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}

	const base = 1 << 40
	apart := map[string]uint64{} // addresses of the matrices that lie one after the other
	fused := map[string]*pack.Tensor{}
	for _, kind := range []string{"weight", "bias"} {
		whole := pack.Tensor{}
		for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
			part, _, ok := m.Tensor("blk.0." + name + "." + kind)
			if !ok {
				t.Fatalf("the model has no %s.%s", name, kind)
			}
			apart[part.Name] = base + uint64(whole.Bytes)
			if whole.Shape == nil {
				whole = *part
				whole.Shape = append([]int64(nil), part.Shape...)
				continue
			}
			if part.Type != whole.Type {
				t.Fatalf("%s has another type than its siblings", part.Name)
			}
			whole.Shape[0] += part.Shape[0]
			whole.Bytes += part.Bytes
		}
		whole.Name = "blk.0.attn_qkv." + kind
		fused[whole.Name] = &whole
	}
	ofParts := Frame{Model: &Model{Hyper: h}, Tensor: func(name string) (*pack.Tensor, uint64, error) {
		tensor, _, _ := m.Tensor(name)
		return tensor, apart[name], nil
	}}
	ofWhole := Frame{Model: &Model{Hyper: h}, Tensor: func(name string) (*pack.Tensor, uint64, error) { return fused[name], base, nil }}

	want := h.Layer(0, m.Has)
	got := h.Layer(0, func(name string) bool {
		return fused[name] != nil || !strings.Contains(name, "blk.0.attn_q.") && m.Has(name)
	})
	if len(got) != len(want) {
		t.Fatalf("found %d operations, wanted %d", len(got), len(want))
	}
	parts := 0
	for i := range want {
		if !strings.Contains(got[i].Weight, "attn_qkv") {
			continue
		}
		parts++
		_, address, err := ofWhole.weight(&got[i])
		if err != nil {
			t.Fatal(err)
		}
		_, wanted, err := ofParts.weight(&want[i])
		if err != nil {
			t.Fatal(err)
		}
		if address != wanted || got[i].Kind != want[i].Kind || got[i].Dst != want[i].Dst || got[i].A != want[i].A {
			t.Errorf("%s from row %d on: address %d, wanted %d of %s", got[i].Weight, got[i].Row, address, wanted, want[i].Weight)
		}
	}
	if parts != 6 {
		t.Errorf("found %d operations on parts, wanted 3 products and 3 biases", parts)
	}
}
