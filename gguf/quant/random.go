package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"leat/gguf"
)

// RandomBlocks fills dst with whole, valid blocks of type t: every quant and sub-block
// scale random, the halves above them finite, of either sign, and such that values have
// a mean near 0 and a standard deviation near scale. It is what tests and synthetic
// models are made of.
//
// Scales below about 1e-5 vanish in some types, whose halves would be too small.
func RandomBlocks(t gguf.Type, dst []byte, rng *rand.Rand, scale float32) error {
	r, err := lookup(t)
	if err != nil {
		return fmt.Errorf("random blocks of %w", err)
	}
	size := t.BlockBytes()
	if len(dst)%size != 0 {
		return fmt.Errorf("random blocks of %v: found %d bytes, want a multiple of %d", t, len(dst), size)
	}
	if t.BlockSize() > 1 {
		fill(dst, rng)
	}
	for ; len(dst) > 0; dst = dst[size:] {
		if r.random != nil {
			r.random(dst[:size], rng, scale)
		} else {
			putHalf(dst[r.numbers.at[0]:], spread(rng, scale/r.rms))
		}
	}
	return nil
}

func fill(dst []byte, rng *rand.Rand) {
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, rng.Uint64())
	}
	for i := range dst {
		dst[i] = byte(rng.Uint32())
	}
}

// The root mean square of a value over random quants and sub-block scales, under d = 1
// (and the minimum that the type's row chooses).
const (
	rmsQ4_0   = 4.637  // -8 … 7
	rmsQ4_1   = 4.646  // 0 … 15 less 6.5 … 8.5
	rmsQ5_0   = 9.247  // -16 … 15
	rmsQ5_1   = 9.305  // 0 … 31 less 13.5 … 17.5
	rmsQ8_0   = 73.90  // int8
	rmsQ2_K   = 13.87  // 15-level scale · 0 … 3 less 1.5 minimum
	rmsQ3_K   = 43.34  // (-32 … 31)·(-4 … 3)
	rmsQ4_K   = 258.3  // (0 … 63)·(0 … 15) less 7.5·(0 … 63)
	rmsQ5_K   = 526.9  // (0 … 63)·(0 … 31) less 15.5·(0 … 63)
	rmsQ6_K   = 1365.7 // int8·(-32 … 31)
	rmsIQ4_NL = 67.44  // levels
	rmsIQ4_XS = 1246.3 // (-32 … 31)·levels
	rmsMXFP4  = 5.852  // fours
	rmsNVFP4  = 5.852  // fours, under a scale of 1

	rmsIQ2_XXS = 53.45 // entries · (1 … 31)/8
	rmsIQ2_XS  = 55.90
	rmsIQ2_S   = 56.35
	rmsIQ3_XXS = 142.5 // entries · (1 … 31)/4
	rmsIQ3_S   = 140.2 // entries · (1 … 31)
	rmsIQ1_S   = 7.200 // entries · (1 … 15)
	rmsIQ1_M   = 7.203
	rmsTQ1_0   = 0.8173 // -1 … 1
	rmsTQ2_0   = 1.2247 // -1 … 2
	rmsQ2_0    = 1.2247
)

// spread gives each block a d of its own, 0.5 to 1.5 of the mean and of either sign, so
// that a kernel which takes a neighbour's is found out.
func spread(rng *rand.Rand, d float32) float32 {
	const rms = 1.0408 // of a uniform 0.5 … 1.5
	u := rng.Uint64()
	d *= (0.5 + float32(u>>40)*0x1p-24) / rms
	if u&1 != 0 {
		return -d
	}
	return d
}

// around is uniform in mid ± half.
func around(rng *rand.Rand, mid, half float32) float32 {
	return mid + half*(2*rng.Float32()-1)
}

func putHalf(b []byte, f float32) {
	binary.LittleEndian.PutUint16(b, F32ToF16(min(max(f, -65504), 65504)))
}

func randomF32(b []byte, rng *rand.Rand, scale float32) {
	binary.LittleEndian.PutUint32(b, math.Float32bits(scale*float32(rng.NormFloat64())))
}

func randomF16(b []byte, rng *rand.Rand, scale float32) {
	putHalf(b, scale*float32(rng.NormFloat64()))
}

func randomBF16(b []byte, rng *rand.Rand, scale float32) {
	bits := math.Float32bits(scale * float32(rng.NormFloat64()))
	binary.LittleEndian.PutUint16(b, uint16(bits>>16))
}

func randomQ4_1(b []byte, rng *rand.Rand, scale float32) {
	d := spread(rng, scale/rmsQ4_1)
	putHalf(b, d)
	putHalf(b[2:], -d*around(rng, 7.5, 1))
}

func randomQ5_1(b []byte, rng *rand.Rand, scale float32) {
	d := spread(rng, scale/rmsQ5_1)
	putHalf(b, d)
	putHalf(b[2:], -d*around(rng, 15.5, 2))
}

func randomQ2_K(b []byte, rng *rand.Rand, scale float32) {
	d := spread(rng, scale/rmsQ2_K)
	putHalf(b[80:], d)
	putHalf(b[82:], 1.5*d)
}

func randomQ4_K(b []byte, rng *rand.Rand, scale float32) {
	d := spread(rng, scale/rmsQ4_K)
	putHalf(b, d)
	putHalf(b[2:], 7.5*d)
}

func randomQ5_K(b []byte, rng *rand.Rand, scale float32) {
	d := spread(rng, scale/rmsQ5_K)
	putHalf(b, d)
	putHalf(b[2:], 15.5*d)
}

// The scale is a power of two: exponents lie around the wanted one, such that their squares' mean is its square.
func randomMXFP4(b []byte, rng *rand.Rand, scale float32) {
	const rms = 1.3229 // of 1/2, 1 and 2, equally often
	e, part := math.Modf(math.Log2(float64(scale)/rmsMXFP4/rms) + 128)
	if rng.Float64() < (math.Exp2(2*part)-1)/3 {
		e++
	}
	b[0] = byte(min(254, max(1, int(e)+rng.IntN(3)-1)))
}
