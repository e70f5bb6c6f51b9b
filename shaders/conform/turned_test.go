package conform

import (
	"testing"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// Q, K and V are turned and kept to the bits of the kernels that do it apart. Compilers of GPUs may fuse sums otherwise from kernel to kernel.
func TestTurnedAlike(t *testing.T) {
	s := newSuite(t, 1)
	if s.dev.Physical.Type != vk.CPU {
		t.Skip("the device is no CPU")
	}
	for _, typ := range []gguf.Type{gguf.Q4_K, gguf.Q6_K, gguf.Q5_0} {
		row, err := shaders.Find("mul_mat_vec", shaders.Turned, typ)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := shaders.Find("mul_mat_vec", shaders.Int8, typ)
		if err != nil {
			t.Fatal(err)
		}
		if !s.kernels.Can(row) {
			t.Skip("the device lacks what it needs")
		}
		cases := []Case{
			turnedAlike(row, plain, turnedShape{heads: 4, headsKV: 2, key: 64, val: 64, turns: 64, neox: true, kv: gguf.F16, parts: "qkv", k: 1280, n: 3}, kernels.Tile{Rows: 4, Team: 16, Unroll: 2, Lanes: 64}),
			turnedAlike(row, plain, turnedShape{heads: 2, headsKV: 2, key: 80, val: 40, turns: 20, kv: gguf.F16, parts: "qkv", k: 768, n: 1}, kernels.Tile{Rows: 1, Team: 8, Unroll: 1, Lanes: 64}),
			turnedAlike(row, plain, turnedShape{heads: 3, headsKV: 1, key: 48, val: 128, turns: 48, kv: gguf.F32, parts: "qkv", k: 512, n: 8}, kernels.Tile{Rows: 2, Team: 32, Unroll: 1, Lanes: 128}),
		}
		t.Run(row.Name, func(t *testing.T) { runCases(t, s, cases, func(Result) {}) })
	}
}
