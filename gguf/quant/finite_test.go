package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Whatever bits of a block of any type are turned on, FirstBroken and Decode agree whether its values are finite.
func TestFirstBroken(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range Types() {
		size, n := typ.BlockBytes(), typ.BlockSize()
		seen := 0
		for at := range size {
			src := make([]byte, 3*size)
			if err := RandomBlocks(typ, src, rng, 1); err != nil {
				t.Fatal(err)
			}
			src[size+at] = 0xff
			if at+1 < size {
				src[size+at+1] = 0xff
			}
			dst := make([]float32, 3*n)
			if err := Decode(typ, dst, src); err != nil {
				t.Fatal(err)
			}
			want := -1
			for i, v := range dst {
				if want < 0 && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
					want = i / n
				}
			}
			got := FirstBroken(typ, src, 0)
			second := FirstBroken(typ, src[size:], int64(size))
			if got != int64(want) || second != got {
				t.Errorf("%v with byte %d set: found block %d, from the second part %d, wanted %d", typ, at, got, second, want)
			}
			if want >= 0 {
				seen++
			}
		}
		if r, err := lookup(typ); err != nil || seen == 0 && len(r.numbers.at) > 0 {
			t.Errorf("%v: no byte made a block that isn't finite", typ)
		}
	}
}
