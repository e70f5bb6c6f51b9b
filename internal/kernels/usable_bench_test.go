package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk/vktest"
)

// What choosing a tested kernel costs a step, for each product: nothing is allocated.
func BenchmarkChoose(b *testing.B) {
	dev := vktest.Open(b)
	k, err := New(dev, Options{Test: func(*Kernels, Variant) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	r := k.Recorder(nil)
	r.Rows.Role, r.Memory.Q8 = Decode, Scratch{256, 1 << 20}
	p := Products{Type: gguf.Q4_K, X: 256, N: 1, K: 4096, XStride: 4096, Of: [3]Matrix{{W: 256, Dst: 256, M: 4096}}, DstStride: 4096}
	if v := ProductVariant(r, &p); v == shaders.FP32 {
		b.Skip("the device has no products in bytes")
	}
	b.ReportAllocs()
	for b.Loop() {
		if ProductVariant(r, &p) == "" {
			b.Fatal("not taken")
		}
		if _, err := r.get(teamChoice(r, shaders.Int8, p.Type, shaders.NoGLU, 1, 4096, 4096)); err != nil {
			b.Fatal(err)
		}
	}
}
