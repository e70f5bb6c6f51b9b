package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Where weights in blocks are decoded depends on the matrix, not on the rows of X, and small matrices go by small tiles.
func TestDecodes(t *testing.T) {
	r := &Recorder{k: &Kernels{dev: noDevice, can: abilities{matrix: 32, shared: 48 << 10}}}
	for _, c := range []struct {
		t       gguf.Type
		m, n, k uint32
		how     Decoding
		want    bool
	}{
		{gguf.Q4_K, 8192, 1, 256, DecodeByShape, true}, {gguf.Q4_K, 8192, 4096, 256, DecodeByShape, true}, {gguf.Q5_K, 8192, 17, 8192, DecodeByShape, true},
		{gguf.Q4_K, 8192, 17, 256, DecodeBefore, false}, {gguf.Q6_K, 8192, 1, 8192, DecodeByShape, false}, {gguf.Q6_K, 8192, 4096, 8192, DecodeByShape, false},
		{gguf.Q6_K, 8192, 512, 8192, DecodeWithin, true}, {gguf.Q6_K, 2048, 1, 8192, DecodeByShape, true}, {gguf.Q6_K, 2048, 4096, 8192, DecodeByShape, true},
		{gguf.Q8_0, 1024, 512, 96, DecodeByShape, true}, {gguf.F16, 1024, 512, 8192, DecodeByShape, false}, {gguf.F16, 8192, 512, 8192, DecodeWithin, false},
	} {
		r.Override.Decoding = c.how
		r.Memory.Tiles.Bytes = shaders.ScratchBytes(c.n, c.k, 512<<20)
		if got := ProductVariant(r, &Products{Type: c.t, N: c.n, K: c.k, XStride: c.k, Of: [3]Matrix{{M: c.m}}, DstStride: c.m}) == shaders.BlocksCM; got != c.want {
			t.Errorf("%v, %d x %d by %d rows, %d: decoded within %v, want %v", c.t, c.m, c.k, c.n, c.how, got, c.want)
		}
	}
	if got := blocksChoice(r, gguf.Q4_K, 1024, 512).cmTile.BM; got != 64 {
		t.Errorf("1024 rows of weights: BM %d, want 64", got)
	}
	if got := blocksChoice(r, gguf.Q4_K, 8192, 512).cmTile.CMTile; got.BM != 128 || got.BN != 128 || !got.Halves {
		t.Errorf("8192 rows of weights: %v, want tiles of 128 x 128 in halves", got)
	}
	r.k.can.shared = 32 << 10
	if got := blocksChoice(r, gguf.Q4_K, 8192, 512).cmTile.CMTile; got.SharedBytes() > r.k.can.shared || got.BN != shaders.TileRows/2 {
		t.Errorf("32 KiB of shared memory: %v, of %d bytes", got, got.SharedBytes())
	}
}

// What was tuned is taken, but for small matrices.
func TestBlocksTuned(t *testing.T) {
	k := &Kernels{dev: noDevice, can: abilities{matrix: 32, shared: 48 << 10}}
	want := CMTile{BM: 128, BN: 128, WM: 32, WN: 64}
	k.tuned.Store(&tuned{cmTiles: [2]CMTile{want, {}}})
	r := &Recorder{k: k}
	want.Halves, want.Wide = true, true
	if got := blocksChoice(r, gguf.Q4_K, 8192, 512).cmTile.CMTile; got != want {
		t.Errorf("%v, want what was tuned, %v", got, want)
	}
	if got := blocksChoice(r, gguf.Q4_K, 1024, 512).cmTile.BM; got != 64 {
		t.Errorf("1024 rows of weights: BM %d, want 64", got)
	}
}

// noDevice has no features and no limits: what is decided by a Kernels' own fields needs none.
var noDevice = &vk.Device{Physical: &vk.PhysicalDevice{}}
