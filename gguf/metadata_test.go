package gguf

import (
	"math"
	"slices"
	"testing"
)

func TestMetadataNumbers(t *testing.T) {
	for _, c := range []struct {
		name    string
		v       any
		i       int64
		isInt   bool
		f       float64
		isFloat bool
	}{
		{"uint8", uint8(255), 255, true, 255, true},
		{"int8", int8(-128), -128, true, -128, true},
		{"uint32", uint32(math.MaxUint32), math.MaxUint32, true, math.MaxUint32, true},
		{"int64", int64(math.MinInt64), math.MinInt64, true, math.MinInt64, true},
		{"uint64 that fits", uint64(math.MaxInt64), math.MaxInt64, true, math.MaxInt64, true},
		{"uint64 that does not", uint64(1 << 63), 0, false, 1 << 63, true},
		{"float32", float32(0.5), 0, false, 0.5, true},
		{"float64", 1e300, 0, false, 1e300, true},
		{"false", false, 0, true, 0, false},
		{"true", true, 0, false, 0, false},
		{"text", "8", 0, false, 0, false},
		{"array", []int32{8}, 0, false, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMetadata()
			set(t, m, "k", c.v)
			if i, ok := m.Int("k"); ok != c.isInt || (ok && i != c.i) {
				t.Errorf("Int: %d, %v, want %d, %v", i, ok, c.i, c.isInt)
			}
			if f, ok := m.Float("k"); ok != c.isFloat || (ok && f != c.f) {
				t.Errorf("Float: %v, %v, want %v, %v", f, ok, c.f, c.isFloat)
			}
		})
	}
}

func TestMetadataArrays(t *testing.T) {
	for _, c := range []struct {
		name   string
		v      any
		ints   []int64 // nil: none
		floats []float32
	}{
		{"uint8", []uint8{1, 255}, []int64{1, 255}, []float32{1, 255}},
		{"int8", []int8{-1}, []int64{-1}, []float32{-1}},
		{"int32", []int32{-1, 1}, []int64{-1, 1}, []float32{-1, 1}},
		{"int64", []int64{1 << 40}, []int64{1 << 40}, []float32{1 << 40}},
		{"uint64 that fits", []uint64{1 << 40}, []int64{1 << 40}, []float32{1 << 40}},
		{"uint64 that does not", []uint64{1, 1 << 63}, nil, nil},
		{"float32", []float32{0.5}, nil, []float32{0.5}},
		{"float64", []float64{0.5}, nil, []float32{0.5}},
		{"strings", []string{"1"}, nil, nil},
		{"no array", int32(1), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMetadata()
			set(t, m, "k", c.v)
			if v, ok := m.Ints("k"); ok != (c.ints != nil) || !slices.Equal(v, c.ints) {
				t.Errorf("Ints: %v, %v, want %v", v, ok, c.ints)
			}
			if v, ok := m.Floats("k"); ok != (c.floats != nil) || !slices.Equal(v, c.floats) {
				t.Errorf("Floats: %v, %v, want %v", v, ok, c.floats)
			}
		})
	}
}

func TestMetadataKeepsOrder(t *testing.T) {
	m := NewMetadata()
	for _, k := range []string{"c", "a", "b"} {
		set(t, m, k, "x")
	}
	set(t, m, "a", true)
	c := m.Clone()
	m.Delete("c")
	m.Delete("nowhere")
	if got := m.Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("keys %q, want a, b", got)
	}
	if got := c.Keys(); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("the clone's keys %q, want c, a, b", got)
	}
	if b, ok := m.Bool("a"); !ok || !b {
		t.Error("the replaced value is not there")
	}
	if _, ok := m.String("a"); ok {
		t.Error("a bool reads as a string")
	}
}

func TestTypes(t *testing.T) {
	for i := range typeTable {
		ty := Type(i)
		if !ty.Valid() {
			continue // a number that ggml has given up
		}
		back, err := ParseType(ty.String())
		if err != nil || back != ty {
			t.Errorf("%v: parsed as %v, error %v", ty, back, err)
		}
		if n, err := ty.RowBytes(int64(2 * ty.BlockSize())); err != nil || n != int64(2*ty.BlockBytes()) {
			t.Errorf("%v: two blocks of %d bytes, error %v", ty, n, err)
		}
	}
	if ty, err := ParseType("q4_k"); err != nil || ty != Q4_K {
		t.Errorf("q4_k: %v, error %v", ty, err)
	}
	for _, s := range []string{"", "q4_2", "Q4_K_M"} {
		if ty, err := ParseType(s); err == nil {
			t.Errorf("ParseType(%q) = %v, want an error", s, ty)
		}
	}
	for _, c := range []struct {
		name string
		t    Type
		cols int64
	}{{"a part of a block", Q4_K, 255}, {"less than nothing", F32, -1}, {"an unknown type", 99, 32}, {"a removed type", 4, 32}, {"too large a row", F32, math.MaxInt64}} {
		if n, err := c.t.RowBytes(c.cols); err == nil {
			t.Errorf("%s: %d bytes, want an error", c.name, n)
		}
	}
}
