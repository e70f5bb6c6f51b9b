package conform

import (
	"testing"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk"
)

// Q, K and V are turned and kept to the bits of the kernels that do it apart. Compilers of GPUs may fuse sums otherwise from kernel to kernel.
func TestTurnedAlike(t *testing.T) {
	s, all := openRunner(t, 1)
	if all.Device().Physical.Type != vk.CPU {
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
		if !all.CanRun(row) {
			t.Skip("the device lacks what it needs")
		}
		cases := []selftest.Case{
			selftest.VecRopeAlike(row, plain, selftest.VecRopeShape{Heads: 4, HeadsKV: 2, Key: 64, Val: 64, Turns: 64, Neox: true, KV: gguf.F16, Parts: "qkv", K: 1280, N: 3}, kernels.Tile{Rows: 4, Team: 16, Unroll: 2, Lanes: 64}),
			selftest.VecRopeAlike(row, plain, selftest.VecRopeShape{Heads: 2, HeadsKV: 2, Key: 80, Val: 40, Turns: 20, KV: gguf.F16, Parts: "qkv", K: 768, N: 1}, kernels.Tile{Rows: 1, Team: 8, Unroll: 1, Lanes: 64}),
			selftest.VecRopeAlike(row, plain, selftest.VecRopeShape{Heads: 3, HeadsKV: 1, Key: 48, Val: 128, Turns: 48, KV: gguf.F32, Parts: "qkv", K: 512, N: 8}, kernels.Tile{Rows: 2, Team: 32, Unroll: 1, Lanes: 128}),
		}
		t.Run(row.Name, func(t *testing.T) { runCases(t, s, cases, func(selftest.Result) {}) })
	}
}
