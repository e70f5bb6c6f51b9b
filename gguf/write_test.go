package gguf

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// everyValue has each value type, alone and as an array, empty arrays, and arrays of
// arrays.
// long is the length of the longest string.
func everyValue(t testing.TB, long int) *Metadata {
	md := NewMetadata()
	for i, v := range []any{
		uint8(200), int8(-100), uint16(60000), int16(-30000), uint32(4e9), int32(-2e9), float32(1.5), true, false, "text, äöü", "",
		uint64(math.MaxUint64), int64(math.MinInt64), math.Pi, math.Inf(-1),
		[]uint8{1, 2}, []int8{-1, 2}, []uint16{1, 65535}, []int16{-1}, []uint32{7}, []int32{-7, 7, 0}, []float32{0.5, -0.5},
		[]bool{true, false, true}, []string{"a", "", "long " + strings.Repeat("x", long)}, []uint64{1 << 63}, []int64{-1}, []float64{1e300},
		[]uint8{}, []string{}, []any{},
		[]any{[]uint8{1}, []string{"x", "y"}, []any{}, []any{[]int32{1, 2}, []any{[]bool{true}}}},
	} {
		if err := md.Set(fmt.Sprintf("key.%02d.%T", i, v), v); err != nil {
			t.Fatal(err)
		}
	}
	return md
}

func sampleTensors() []WriteTensor {
	bytesOf := func(n int, seed byte) io.Reader {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)*7 + seed
		}
		return bytes.NewReader(b)
	}
	return []WriteTensor{
		{"token_embd.weight", Q4_K, []int64{3, 256}, bytesOf(3*144, 1)},
		{"one.bias", F32, []int64{1}, bytesOf(4, 2)},
		{"blk.0.ffn_up_exps.weight", Q8_0, []int64{2, 3, 64}, bytesOf(2*3*68, 3)},
		{"four", F16, []int64{2, 3, 1, 5}, bytesOf(60, 4)},
	}
}

func sample(t testing.TB, version int, md *Metadata) []byte {
	var b bytes.Buffer
	if err := Write(&b, md, sampleTensors(), WriteOptions{Version: version}); err != nil {
		t.Fatal(err)
	}
	// The padding after the last tensor is no part of it: cut it, so that a shorter file is a broken one.
	f, err := Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	last := f.Tensors[len(f.Tensors)-1]
	return b.Bytes()[:last.Off+last.Bytes]
}

func TestRoundTrip(t *testing.T) {
	for _, o := range []WriteOptions{{}, {Version: 2}, {Version: 3}, {Alignment: 1}, {Alignment: 256}, {Version: 2, Alignment: 65536}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			var b bytes.Buffer
			md := everyValue(t, 300000)
			if err := Write(&b, md, sampleTensors(), o); err != nil {
				t.Fatal(err)
			}
			f, err := Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil {
				t.Fatal(err)
			}
			if want := max(o.Version, 2); f.Version < want || (o.Version != 0 && f.Version != o.Version) {
				t.Errorf("version %d, want %d", f.Version, o.Version)
			}
			if want := cmpOr(o.Alignment, 32); f.Alignment != want {
				t.Errorf("alignment %d, want %d", f.Alignment, want)
			}
			for _, k := range md.Keys() {
				want, _ := md.Get(k)
				if got, _ := f.Get(k); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %#v, want %#v", k, got, want)
				}
			}
			keys := slices.DeleteFunc(f.Keys(), func(k string) bool { return k == "general.alignment" })
			if !slices.Equal(keys, md.Keys()) {
				t.Errorf("keys %q, want %q", keys, md.Keys())
			}
			checkTensors(t, f, sampleTensors())
		})
	}
}

func cmpOr(a, b int64) int64 {
	if a != 0 {
		return a
	}
	return b
}

func checkTensors(t *testing.T, f *File, want []WriteTensor) {
	t.Helper()
	if len(f.Tensors) != len(want) {
		t.Fatalf("%d tensors, want %d", len(f.Tensors), len(want))
	}
	for i, w := range want {
		ti, ok := f.Tensor(w.Name)
		if !ok || ti != &f.Tensors[i] {
			t.Fatalf("tensor %q: not at %d", w.Name, i)
		}
		data, _ := io.ReadAll(w.Data)
		if ti.Type != w.Type || !slices.Equal(ti.Shape, w.Shape) || ti.Bytes != int64(len(data)) || ti.Off%f.Alignment != 0 {
			t.Errorf("tensor %+v, want %v of %v", *ti, w.Type, w.Shape)
		}
		got, err := f.ReadTensor(ti)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("tensor %q: other bytes came back", w.Name)
		}
	}
}

// A file without tensors ends with its header.
func TestRoundTripVocabulary(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, everyValue(t, 300000), nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors) != 0 || len(f.Keys()) != len(everyValue(t, 300000).Keys()) {
		t.Errorf("%d tensors, %d keys", len(f.Tensors), len(f.Keys()))
	}
}

func TestWriteKeepsStatedAlignment(t *testing.T) {
	md := NewMetadata()
	if err := md.Set("general.alignment", uint32(128)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ option, want int64 }{{0, 128}, {64, 64}} {
		var b bytes.Buffer
		if err := Write(&b, md, sampleTensors(), WriteOptions{Alignment: c.option}); err != nil {
			t.Fatal(err)
		}
		f, err := Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if f.Alignment != c.want {
			t.Errorf("option %d: alignment %d, want %d", c.option, f.Alignment, c.want)
		}
	}
	if a, _ := md.Int("general.alignment"); a != 128 {
		t.Errorf("the caller's metadata changed to %d", a)
	}
}

func TestWriteRefuses(t *testing.T) {
	data := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	for _, c := range []struct {
		name    string
		tensors []WriteTensor
		o       WriteOptions
		want    string
	}{
		{"version 1", nil, WriteOptions{Version: 1}, "found version 1"},
		{"alignment 3", nil, WriteOptions{Alignment: 3}, "found alignment 3"},
		{"too little data", []WriteTensor{{"a", F32, []int64{4}, data(15)}}, WriteOptions{}, "found 15 bytes of data, want 16"},
		{"too much data", []WriteTensor{{"a", F32, []int64{4}, data(17)}}, WriteOptions{}, "found more than 16 bytes"},
		{"too much data by Read", []WriteTensor{{"a", F32, []int64{4}, readerOnly{data(17)}}}, WriteOptions{}, "found more than 16 bytes"},
		{"no data", []WriteTensor{{"a", F32, []int64{4}, nil}}, WriteOptions{}, "found no data"},
		{"no name", []WriteTensor{{"", F32, []int64{4}, data(16)}}, WriteOptions{}, "a name of 0 bytes"},
		{"a name twice", []WriteTensor{{"a", F32, []int64{1}, data(4)}, {"a", F32, []int64{1}, data(4)}}, WriteOptions{}, "it twice"},
		{"no dimensions", []WriteTensor{{"a", F32, nil, data(4)}}, WriteOptions{}, "0 dimensions"},
		{"a dimension of 0", []WriteTensor{{"a", F32, []int64{0}, data(0)}}, WriteOptions{}, "dimensions of 1 or more"},
		{"part of a block", []WriteTensor{{"a", Q4_0, []int64{33}, data(4)}}, WriteOptions{}, "whole blocks of 32"},
		{"a removed type", []WriteTensor{{"a", 4, []int64{32}, data(4)}}, WriteOptions{}, "once Q4_2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Write(io.Discard, NewMetadata(), c.tensors, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

type fullDisk struct{ left int }

func (w *fullDisk) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, io.ErrShortWrite
	}
	w.left -= len(p)
	return len(p), nil
}

// Wherever the disk fills up, Write says so.
func TestWriteOnFullDisk(t *testing.T) {
	whole := len(sample(t, 3, everyValue(t, 5)))
	for left := 0; left < whole; left += 97 {
		if err := Write(&fullDisk{left}, everyValue(t, 5), sampleTensors(), WriteOptions{}); err == nil {
			t.Fatalf("disk of %d bytes took a file of %d", left, whole)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	deep := []any{}
	for range 8 {
		deep = []any{deep}
	}
	for _, v := range []any{nil, 1, uint(1), []int{1}, struct{}{}, []any{1}, []any{"text"}, []any{[]any{int8(1)}}, deep, complex(1, 1)} {
		if err := NewMetadata().Set("k", v); err == nil {
			t.Errorf("%#v: no error", v)
		}
	}
	if err := NewMetadata().Set("", uint8(1)); err == nil {
		t.Error("empty key: no error")
	}
}
