package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
)

// A part of as many rows as are to stay together goes in halves, whatever the matrix.
func TestLeastRowsGoInHalves(t *testing.T) {
	for _, matrix := range []int{0, 32} {
		r := &Recorder{k: &Kernels{dev: noDevice, can: abilities{matrix: matrix}}}
		if n := LeastRows(r); n != 0 {
			t.Errorf("subgroups of %d without scratch: %d rows stay together, want no demand", matrix, n)
		}
		r.Memory.Tiles.Bytes = shaders.ScratchBytes(2048, 28672, 0)
		n := LeastRows(r)
		for _, k := range []uint32{64, 4096, 28672} {
			v := ProductVariant(r, &Products{Type: gguf.F16, N: max(n, 1), K: k, XStride: k, Of: [3]Matrix{{M: 100}}, DstStride: 100})
			got := v == shaders.CM
			if want := matrix > 0; got != want {
				t.Errorf("subgroups of %d, %d rows of %d values: in halves %v, want %v", matrix, n, k, got, want)
			}
		}
	}
}
