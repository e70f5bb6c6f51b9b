package gpu

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
)

// Weights in blocks are decoded in products of up to so many rows, and small matrices go by small tiles.
func TestDecodes(t *testing.T) {
	r := &Recorder{k: &Kernels{matrix: 32, shared: 48 << 10}}
	for _, c := range []struct {
		t    gguf.Type
		n, k uint32
		how  Decoding
		want bool
	}{
		{gguf.Q4_K, 17, 256, DecodeByRows, true}, {gguf.Q6_K, mostDecoded, 28672, DecodeByRows, true}, {gguf.Q8_0, 512, 96, DecodeByRows, true},
		{gguf.Q4_K, mostDecoded + 1, 8192, DecodeByRows, false}, {gguf.Q4_K, mostDecoded + 1, 8192, DecodeWithin, true}, {gguf.Q4_K, 17, 256, DecodeBefore, false},
		{gguf.F16, 512, 8192, DecodeByRows, false}, {gguf.F16, 512, 8192, DecodeWithin, false},
	} {
		r.Decoding = c.how
		if got := r.decodes(c.t, 8192, c.n, c.k); got != c.want {
			t.Errorf("%v, %d rows of %d values, %d: decoded within %v, want %v", c.t, c.n, c.k, c.how, got, c.want)
		}
	}
	if got := r.blocksChoice(gguf.Q4_K, 1024, 512).split.BM; got != 64 {
		t.Errorf("1024 rows of weights: BM %d, want 64", got)
	}
	if got := r.blocksChoice(gguf.Q4_K, 8192, 512).split.Split; got != OwnSplit(512) {
		t.Errorf("8192 rows of weights: %v, want %v", got, OwnSplit(512))
	}
	r.k.shared = 32 << 10
	if got := r.blocksChoice(gguf.Q4_K, 8192, 512).split.Split; got.SharedBytes() > r.k.shared || got.BN != shaders.TileRows/2 {
		t.Errorf("32 KiB of shared memory: %v, of %d bytes", got, got.SharedBytes())
	}
}
