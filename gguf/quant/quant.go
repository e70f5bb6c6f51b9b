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
	// standard deviation near scale. See RandomBlocks.
	random func(b []byte, rng *rand.Rand, scale float32)
}

var table = []row{
	{gguf.F32, decodeF32, randomF32},
	{gguf.F16, decodeF16, randomF16},
	{gguf.BF16, decodeBF16, randomBF16},
	{gguf.Q4_0, decodeQ4_0, randomQ4_0},
	{gguf.Q4_1, decodeQ4_1, randomQ4_1},
	{gguf.Q5_0, decodeQ5_0, randomQ5_0},
	{gguf.Q5_1, decodeQ5_1, randomQ5_1},
	{gguf.Q8_0, decodeQ8_0, randomQ8_0},
	{gguf.Q2_K, decodeQ2_K, randomQ2_K},
	{gguf.Q3_K, decodeQ3_K, randomQ3_K},
	{gguf.Q4_K, decodeQ4_K, randomQ4_K},
	{gguf.Q5_K, decodeQ5_K, randomQ5_K},
	{gguf.Q6_K, decodeQ6_K, randomQ6_K},
	{gguf.IQ4_NL, decodeIQ4_NL, randomIQ4_NL},
	{gguf.IQ4_XS, decodeIQ4_XS, randomIQ4_XS},
	{gguf.MXFP4, decodeMXFP4, randomMXFP4},
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
