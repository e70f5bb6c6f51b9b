package main

import (
	"bytes"
	"strings"
	"testing"

	"leat/gguf"
	"leat/vk/vktest"
)

// Attention is measured on every type of cache, a read of the cache counts, and turns find caches that do not overlap.
func TestAttention(t *testing.T) {
	vktest.Open(t)
	var out, errw bytes.Buffer
	if code := run(t.Context(), strings.Fields("-kernels flash_attn -types f16,q8_0,q4_0,q6_k -shapes 8x64,8x40 -memory 1 -count 1 -positions 200"), &out, &errw); code != 0 {
		t.Fatalf("exit %d: %s", code, &errw)
	}
	for _, want := range []string{"BenchmarkFlashAttn/type=F16/shape=8x64/n=1", "BenchmarkFlashAttn/type=Q8_0/shape=8x64/n=1", "BenchmarkFlashAttn/type=Q4_0/shape=8x64/n=1",
		"BenchmarkFlashAttn/type=F16/shape=8x40/n=1", "# BenchmarkFlashAttn/type=Q4_0/shape=8x40/n=1: keep heads of 40 values"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "Q6_K") {
		t.Errorf("a cache of Q6_K in\n%s", &out)
	}
	p := point{kernel: "flash_attn", typ: gguf.F16, shape: shape{8, 64}, n: 1}
	if got, want := kernelOps["flash_attn"].reads(p, 200), int64(8*64*8+2*200*2*64*2); got != want {
		t.Errorf("%d bytes read, wanted %d", got, want)
	}
	c := cache{pages: 1000, maxPages: 4, count: 3}
	for turn, want := range []uint64{1000, 1032, 1064, 1000} {
		if got := c.of(turn).pages; got != want {
			t.Errorf("turn %d: page table at %d, wanted %d", turn, got, want)
		}
	}
}
