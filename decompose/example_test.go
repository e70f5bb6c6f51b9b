package decompose_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"leat/decompose"
	"leat/decompose/pack"
)

// A GGUF becomes a pack, which is then opened: a layer is one read.
func Example() {
	dir, err := os.MkdirTemp("", "pack")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "demo")
	manifest, err := decompose.Run(context.Background(), "../cmd/leat/demo/leat-demo-q4_k_m.gguf", out, decompose.Options{Verify: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(manifest.Architecture, manifest.NumLayers, "layers,", manifest.Quantization)

	m, err := pack.Open(out)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	u, ok := m.Unit(pack.Layer, 0)
	if !ok {
		log.Fatal("the pack has no layer 0")
	}
	fmt.Println(u.Name, "is", len(u.Tensors), "tensors in", len(u.Extents), "read")
	// Output:
	// qwen3 8 layers, Q4_K_M
	// layer 0 is 11 tensors in 1 read
}
