package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"leat/gguf"
)

// ErrUnsupported is wrapped by the error of a type that has no decoder here.
var ErrUnsupported = errors.New("unsupported tensor type")

// row is all this package knows of one type.
type row struct {
	t gguf.Type
	// decode turns one block into its values; for types of single values, any number
	// of them. The slices' lengths have been checked.
	decode func(dst []float32, src []byte)
	// random fills a block whose bytes are random already, so that its values have a
	// standard deviation near scale, see RandomBlocks. nil: by its one number, a half.
	random   func(b []byte, rng *rand.Rand, scale float32)
	rms      float32 // of a value, of random bytes under a half of 1; where random is nil
	numbers  numbers
	integers [2]int // the block's bytes that hold its values' integers: from one up to another
}

var table = []row{
	{t: gguf.F32, decode: decodeF32, random: randomF32, numbers: numbers{inFloat, []int{0}}},
	{t: gguf.F16, decode: decodeF16, random: randomF16, numbers: halves(0)},
	{t: gguf.BF16, decode: decodeBF16, random: randomBF16, numbers: numbers{inBrain, []int{0}}},
	{t: gguf.Q4_0, decode: decodeQ4_0, rms: rmsQ4_0, numbers: halves(0), integers: [2]int{2, 18}},
	{t: gguf.Q4_1, decode: decodeQ4_1, random: randomQ4_1, numbers: halves(0, 2), integers: [2]int{4, 20}},
	{t: gguf.Q5_0, decode: decodeQ5_0, rms: rmsQ5_0, numbers: halves(0), integers: [2]int{2, 22}},
	{t: gguf.Q5_1, decode: decodeQ5_1, random: randomQ5_1, numbers: halves(0, 2), integers: [2]int{4, 24}},
	{t: gguf.Q8_0, decode: decodeQ8_0, rms: rmsQ8_0, numbers: halves(0), integers: [2]int{2, 34}},
	{t: gguf.Q2_K, decode: decodeQ2_K, random: randomQ2_K, numbers: halves(80, 82), integers: [2]int{16, 80}},
	{t: gguf.Q3_K, decode: decodeQ3_K, rms: rmsQ3_K, numbers: halves(108), integers: [2]int{0, 96}},
	{t: gguf.Q4_K, decode: decodeQ4_K, random: randomQ4_K, numbers: halves(0, 2), integers: [2]int{16, 144}},
	{t: gguf.Q5_K, decode: decodeQ5_K, random: randomQ5_K, numbers: halves(0, 2), integers: [2]int{16, 176}},
	{t: gguf.Q6_K, decode: decodeQ6_K, rms: rmsQ6_K, numbers: halves(208), integers: [2]int{0, 192}},
	{t: gguf.IQ4_NL, decode: decodeIQ4_NL, rms: rmsIQ4_NL, numbers: halves(0), integers: [2]int{2, 18}},
	{t: gguf.IQ4_XS, decode: decodeIQ4_XS, rms: rmsIQ4_XS, numbers: halves(0), integers: [2]int{8, 136}},
	{t: gguf.MXFP4, decode: decodeMXFP4, random: randomMXFP4, numbers: numbers{inExponent, []int{0}}, integers: [2]int{1, 17}},
	{t: gguf.NVFP4, decode: decodeNVFP4, random: randomNVFP4, integers: [2]int{4, 36}}, // no scale is NaN or infinite
	{t: gguf.IQ2_XXS, decode: decodeIQ2_XXS, rms: rmsIQ2_XXS, numbers: halves(0), integers: [2]int{2, 66}},
	{t: gguf.IQ2_XS, decode: decodeIQ2_XS, rms: rmsIQ2_XS, numbers: halves(0), integers: [2]int{2, 74}},
	{t: gguf.IQ2_S, decode: decodeIQ2_S, rms: rmsIQ2_S, numbers: halves(0), integers: [2]int{2, 82}},
	{t: gguf.IQ3_XXS, decode: decodeIQ3_XXS, rms: rmsIQ3_XXS, numbers: halves(0), integers: [2]int{2, 98}},
	{t: gguf.IQ3_S, decode: decodeIQ3_S, rms: rmsIQ3_S, numbers: halves(0), integers: [2]int{2, 110}},
	{t: gguf.IQ1_S, decode: decodeIQ1_S, rms: rmsIQ1_S, numbers: halves(0), integers: [2]int{2, 50}},
	{t: gguf.IQ1_M, decode: decodeIQ1_M, random: randomIQ1_M, numbers: numbers{inNibbles, []int{52}}, integers: [2]int{0, 48}},
	{t: gguf.TQ1_0, decode: decodeTQ1_0, rms: rmsTQ1_0, numbers: halves(52), integers: [2]int{0, 52}},
	{t: gguf.TQ2_0, decode: decodeTQ2_0, rms: rmsTQ2_0, numbers: halves(64), integers: [2]int{0, 64}},
	{t: gguf.Q1_0, decode: decodeQ1_0, rms: 1, numbers: halves(0), integers: [2]int{2, 18}},
	{t: gguf.Q2_0, decode: decodeQ2_0, rms: rmsQ2_0, numbers: halves(0), integers: [2]int{2, 18}},
}

func lookup(t gguf.Type) (row, error) {
	for _, r := range table {
		if r.t == t {
			return r, nil
		}
	}
	return row{}, fmt.Errorf("%v: %w", t, ErrUnsupported)
}

// Supported reports whether Decode knows the type.
func Supported(t gguf.Type) bool {
	_, err := lookup(t)
	return err == nil
}

// Types lists the supported types.
func Types() []gguf.Type {
	ts := make([]gguf.Type, len(table))
	for i, r := range table {
		ts[i] = r.t
	}
	return ts
}

// Integers says where a block of type t has its values' integers, without scales: in bytes from one up to another. For types of single values both
// are 0.
func Integers(t gguf.Type) (from, to int) {
	r, _ := lookup(t)
	return r.integers[0], r.integers[1]
}

// Decode turns whole blocks of type t into len(dst) values.
func Decode(t gguf.Type, dst []float32, src []byte) error {
	r, err := lookup(t)
	if err != nil {
		return fmt.Errorf("decode %w", err)
	}
	want, err := t.RowBytes(int64(len(dst)))
	if err != nil {
		return fmt.Errorf("decode %v: %w", t, err)
	}
	if int64(len(src)) != want {
		return fmt.Errorf("decode %v: found %d bytes for %d values, want %d", t, len(src), len(dst), want)
	}
	n, size := t.BlockSize(), t.BlockBytes()
	if n == 1 {
		r.decode(dst, src)
		return nil
	}
	for len(dst) > 0 {
		r.decode(dst[:n], src[:size])
		dst, src = dst[n:], src[size:]
	}
	return nil
}

func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }
