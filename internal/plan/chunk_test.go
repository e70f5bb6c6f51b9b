package plan_test

import (
	"testing"

	"leat/gguf"
	"leat/internal/plan"
)

// A large model's prompts cross the link in steps of many rows, where what that takes of the VRAM is nothing beside what
// is streamed anyway; a model of which little is streamed keeps the VRAM for weights.
func TestChunkOfStreamed(t *testing.T) {
	for _, c := range []struct {
		preset string
		vram   int64
		chunk  int
	}{{"70b", 6 << 30, 2048}, {"70b", 24 << 30, 2048}, {"8b", 2 << 30, 512}, {"8b", 4 << 30, 1024}} {
		h, m := preset(t, c.preset)
		p := mustMake(t, h, m, plan.Budget{DeviceBytes: c.vram, HostBytes: 80 << 30, ContextLength: 2560, KVType: gguf.F16, Matrices: true, FewRowKernels: true})
		if p.Chunk != c.chunk {
			t.Errorf("%s in %d GiB: steps of %d rows, want %d", c.preset, c.vram>>30, p.Chunk, c.chunk)
		}
		if p.Scratch.Bytes > c.vram/4 {
			t.Errorf("%s in %d GiB: %d MiB of scratch, want a quarter at most", c.preset, c.vram>>30, p.Scratch.Bytes>>20)
		}
	}
}

// Less VRAM decodes weights into shorter slices, unless it is asked for others.
func TestSlices(t *testing.T) {
	h, m := preset(t, "70b")
	make := func(vram, asked int64) int64 {
		b := plan.Budget{DeviceBytes: vram, HostBytes: 64 << 30, ContextLength: 2560, Matrices: true, FewRowKernels: true, Sweep: plan.Sweep{Halves: asked}}
		p := mustMake(t, h, m, b)
		if w := p.Scratch.WeightBytes; p.Scratch.Halves.Bytes <= w {
			t.Errorf("%d bytes of VRAM: weights take %d of %d bytes, no room for the other side", vram, w, p.Scratch.Halves.Bytes)
		}
		return p.Scratch.WeightBytes
	}
	all, little := make(75<<30, 0), make(6<<30, 0)
	if little >= all || little <= 0 {
		t.Errorf("slices of %d bytes within 6 GiB, of %d within 75", little, all)
	}
	if got := make(75<<30, little); got != little {
		t.Errorf("asked for slices of %d bytes, found %d", little, got)
	}
	if got := make(75<<30, 1<<40); got < all || got > 1<<40/2 {
		t.Errorf("slices as large as the largest matrix: %d bytes", got)
	}
}
