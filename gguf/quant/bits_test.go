package quant

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"leat/gguf"
)

// A block of Q1_0 or Q2_0, read as one number whose digits, of base 2 or 4, are the values.
func TestDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		t            gguf.Type
		base, values int64
		levels       []float64 // of d, for each digit
	}{
		{gguf.Q1_0, 2, 128, []float64{-1, 1}},
		{gguf.Q2_0, 4, 64, []float64{-1, 0, 1, 2}},
	} {
		for range 200 {
			b, v := make([]byte, 18), make([]float32, c.values)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			b[1] &^= 0x40 // d is finite
			h := binary.LittleEndian.Uint16(b)
			d := math.Ldexp(float64(h&0x3ff|0x400), int(h>>10&31)-25)
			if h>>10&31 == 0 {
				d = math.Ldexp(float64(h&0x3ff), -24)
			}
			if h>>15 == 1 {
				d = -d
			}
			digits := slices.Clone(b[2:])
			slices.Reverse(digits)
			n, digit := new(big.Int).SetBytes(digits), new(big.Int)
			if err := Decode(c.t, v, b); err != nil {
				t.Fatal(err)
			}
			for i := range v {
				n.DivMod(n, big.NewInt(c.base), digit)
				if want := c.levels[digit.Int64()] * d; float64(v[i]) != want {
					t.Fatalf("%v, block % x: value %d is %v, want %v", c.t, b, i, v[i], want)
				}
			}
		}
	}
}
