package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
)

// A part of as many rows as are to stay together goes in halves, whatever the matrix.
func TestLeastRowsGoInHalves(t *testing.T) {
	for _, matrix := range []int{0, 32} {
		r := &Recorder{k: &Kernels{matrix: matrix}}
		if n := LeastRows(r); n != 0 {
			t.Errorf("subgroups of %d without scratch: %d rows stay together, want no demand", matrix, n)
		}
		r.Scratch.Bytes = shaders.ScratchBytes(2048, 28672, 0)
		n := LeastRows(r)
		for _, k := range []uint32{64, 4096, 28672} {
			got := halves(r, gguf.Q4_K, &shaders.MulMatArgs{M: 100, K: k, N: max(n, 1), XStride: k, DstStride: 100})
			if want := matrix > 0; got != want {
				t.Errorf("subgroups of %d, %d rows of %d values: in halves %v, want %v", matrix, n, k, got, want)
			}
		}
	}
}
