package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
)

// raw builds a header by hand, to hold what Write would refuse to write.
type raw struct{ bytes.Buffer }

func (r *raw) u32(v uint32) *raw { binary.Write(r, binary.LittleEndian, v); return r }
func (r *raw) u64(v uint64) *raw { binary.Write(r, binary.LittleEndian, v); return r }
func (r *raw) str(s string) *raw { r.u64(uint64(len(s))); r.WriteString(s); return r }
func (r *raw) zeros(n int) *raw  { r.Write(make([]byte, n)); return r }

func head(tensors, values uint64) *raw {
	r := &raw{}
	r.WriteString("GGUF")
	return r.u32(3).u64(tensors).u64(values)
}

func (r *raw) tensor(name string, t Type, off uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(uint32(t)).u64(off)
}

func deep(n int) *raw {
	r := head(0, 1).str("k").u32(uint32(Array))
	for range n - 1 {
		r.u32(uint32(Array)).u64(1)
	}
	return r.u32(uint32(Uint8)).u64(0)
}

func TestParseRefuses(t *testing.T) {
	cases := []struct {
		name string
		r    *raw
		want string
	}{
		{"an empty file", &raw{}, "file of 0 bytes"},
		{"three bytes", (&raw{}).zeros(3), "file of 3 bytes"},
		{"another magic", (&raw{}).str("gguf"), `want "GGUF"`},
		{"version 1", func() *raw { r := &raw{}; r.WriteString("GGUF"); return r.u32(1).zeros(16) }(), "found 1, want 2 or 3"},
		{"version 4", func() *raw { r := &raw{}; r.WriteString("GGUF"); return r.u32(4).zeros(16) }(), "found 4, want 2 or 3"},
		{"big-endian", func() *raw { r := &raw{}; r.WriteString("GGUF"); return r.u32(3 << 24).zeros(16) }(), "version 3 in big-endian order"},
		{"a header that ends early", func() *raw { r := &raw{}; r.WriteString("GGUF"); return r.u32(3).u64(0) }(), "number of metadata values"},
		{"more values than bytes", head(0, 1<<40), "number of metadata values"},
		{"more tensors than bytes", head(math.MaxUint64, 0), "number of tensors"},
		{"a key of no letters", head(0, 1).str("").u32(0).zeros(9), "0 bytes, want 1 to 65535"},
		{"a key longer than the file", head(0, 1).u64(1 << 62).zeros(99), "metadata key 1 of 1"},
		{"a long key", head(0, 1).str(strings.Repeat("k", 70000)).u32(0).zeros(1), "70000 bytes, want 1 to 65535"},
		{"a value type too high", head(0, 1).str("k").u32(13).zeros(8), "value type 13, want a value type of 0 to 12"},
		{"an array of a type too high", head(0, 1).str("k").u32(9).u32(99).u64(0), "an array of value type 99"},
		{"an array longer than the file", head(0, 1).str("k").u32(9).u32(4).u64(1 << 61), `metadata "k"`},
		{"an array of strings longer than the file", head(0, 1).str("k").u32(9).u32(8).u64(4).zeros(16), "each of 8 bytes or more"},
		{"an array of arrays longer than the file", head(0, 1).str("k").u32(9).u32(9).u64(3).zeros(24), "each of 12 bytes or more"},
		{"arrays nested 9 deep", deep(9), "arrays nested 9 deep, want at most 8"},
		{"a string longer than the file", head(0, 1).str("k").u32(8).u64(math.MaxUint64), `metadata "k"`},
		{"a bool of 2", head(0, 1).str("k").u32(7).zeros(0).u32(2), "a bool of 2"},
		{"the same key twice", head(0, 2).str("k").u32(4).u32(1).str("k").u32(4).u32(1), "it twice"},
		{"alignment 0", head(0, 1).str("general.alignment").u32(4).u32(0), "a power of two"},
		{"alignment 48", head(0, 1).str("general.alignment").u32(4).u32(48), "a power of two"},
		{"alignment by a string", head(0, 1).str("general.alignment").u32(8).str("32"), "a power of two"},
		{"five dimensions", head(1, 0).tensor("a", F32, 0, 1, 1, 1, 1, 1).zeros(99), "5 dimensions, want at most 4"},
		{"a dimension of 0", head(1, 0).tensor("a", F32, 0, 4, 0).zeros(99), "a dimension of 0"},
		{"a dimension of 2⁶³", head(1, 0).tensor("a", F32, 0, 1<<63).zeros(99), "a dimension of 9223372036854775808"},
		{"a product above 2⁶³", head(1, 0).tensor("a", F32, 0, 1<<31, 1<<31, 4).zeros(99), "fewer than 2⁶³ bytes"},
		{"a product above 2⁶⁴", head(1, 0).tensor("a", F32, 0, 1<<40, 1<<40, 1<<40).zeros(99), "fewer than 2⁶³ bytes"},
		{"a row above 2⁶³", head(1, 0).tensor("a", F32, 0, 1<<62).zeros(99), "fewer than 2⁶³ bytes"},
		{"a row of part of a block", head(1, 0).tensor("a", Q4_K, 0, 128).zeros(99), "whole blocks of 256"},
		{"a type taken back", head(1, 0).tensor("a", 31, 0, 32).zeros(99), "type 31 (once Q4_0_4_4)"},
		{"an unknown type", head(1, 0).tensor("a", 1000, 0, 32).zeros(99), "type 1000"},
		{"an offset off the alignment", head(1, 0).tensor("a", F32, 4, 8).zeros(99), "offset 4, want a multiple of the alignment, 32"},
		{"an offset of 2⁶³", head(1, 0).tensor("a", F32, 1<<63, 8).zeros(99), "want a multiple of the alignment"},
		{"an end of file within a tensor", head(1, 0).tensor("a", F32, 0, 64).zeros(200), "data inside the file"},
		{"an offset behind the file", head(1, 0).tensor("a", F32, 1<<40, 8).zeros(200), "data inside the file"},
		{"no data at all", head(1, 0).tensor("a", F32, 0, 8), "data inside the file, which has 0 bytes"},
		{"the same tensor twice", head(2, 0).tensor("a", F32, 0, 8).tensor("a", F32, 32, 8).zeros(200), `tensor "a": found it twice`},
		{"tensors that overlap", head(2, 0).tensor("b", F32, 32, 8).tensor("a", F32, 0, 16).zeros(200), `it 32 bytes into tensor "a"`},
		{"a tensor's name of no letters", head(1, 0).tensor("", F32, 0, 8).zeros(99), "0 bytes, want 1 to 65535"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse(bytes.NewReader(c.r.Bytes()), int64(c.r.Len()))
			if err == nil {
				t.Fatalf("no error; metadata %v, tensors %v", f.Keys(), f.Tensors)
			}
			if !errors.Is(err, ErrFormat) {
				t.Errorf("error %v does not wrap ErrFormat", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one with %q", err, c.want)
			}
		})
	}
}

// A file cut anywhere is refused, never misread: no prefix of it parses.
func TestParseEveryTruncation(t *testing.T) {
	whole := sample(t, 3, everyValue(t, 5))
	for n := range len(whole) {
		if _, err := Parse(bytes.NewReader(whole[:n]), int64(n)); !errors.Is(err, ErrFormat) {
			t.Fatalf("first %d of %d bytes: error %v, want ErrFormat", n, len(whole), err)
		}
	}
}

// text is a file that begins otherwise than a GGUF.
func text(s string) *raw {
	r := &raw{}
	r.WriteString(s)
	return r
}

func TestParseHints(t *testing.T) {
	for _, c := range []struct {
		name string
		r    *raw
		want string
	}{
		{"big-endian", func() *raw { r := &raw{}; r.WriteString("GGUF"); return r.u32(3 << 24) }(), "little-endian machine"},
		{"cut short", head(1, 0).tensor("a", F32, 0, 64).zeros(200), "that its header describes"},
		{"cut short in the metadata", head(0, 3).str("a"), "download or copy it again"},
		{"no bytes at all", &raw{}, "download or copy it again"},
		{"git-lfs pointer", text("version https://git-lfs.github.com/spec/v1"), "git lfs pull"},
		{"web page", text("<!DOCTYPE html>"), "web page"},
		{"PyTorch weights", text("PK\x03\x04"), "PyTorch"},
		{"before GGUF", text("tjgg"), "before GGUF"},
		{"safetensors", text("\x00\x10\x00\x00\x00\x00\x00\x00{\"__metadata__\""), "safetensors: convert"},
		{"a web page after a blank line", text("\n\n  <html>"), "web page"},
		{"a web page with a byte order mark", text("\ufeff<html>"), "web page"},
		{"an error of a server", text("{\"error\":\"Access to model x is restricted\"}"), `"{\"error\":\"Access to model x is restricted\"}"`},
		{"a refusal", text("Entry not found\n"), `"Entry not found"`},
		{"pickled PyTorch weights", text("\x80\x02\x8a\x0a"), "PyTorch"},
		{"gzip", text("\x1f\x8b\x08\x00"), "gzip"},
		{"zstd", text("\x28\xb5\x2f\xfd"), "zstd"},
		{"a hole", func() *raw { r := &raw{}; r.zeros(4096); return r }(), "begins with zeros"},
		{"the middle of a file", text("\x9a\x01\xf3\x77\x00\x80\x02\x91\xfe"), "join its parts"},
		{"removed type", head(1, 0).tensor("a", 4, 0, 32).zeros(99), "quantize the model again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(bytes.NewReader(c.r.Bytes()), int64(c.r.Len()))
			var h interface{ Hint() string }
			if !errors.As(err, &h) || !strings.Contains(h.Hint(), c.want) {
				t.Errorf("error %v: no hint with %q", err, c.want)
			}
		})
	}
}

// What a count promises must not be allocated before the bytes are known to be there.
func TestParseAllocatesWithinTheFile(t *testing.T) {
	for _, c := range []struct {
		name string
		r    *raw
	}{
		{"tensors", head(1<<33, 0).zeros(1 << 16)},
		{"strings", head(0, 1).str("k").u32(9).u32(8).u64(1 << 33).zeros(1 << 16)},
		{"string", head(0, 1).str("k").u32(8).u64(1 << 33).zeros(1 << 16)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.r.Bytes()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(bytes.NewReader(b), int64(len(b)))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("no error")
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes allocated for a file of %d", n, len(b))
			}
		})
	}
}

func TestScalarReadsAsOneValue(t *testing.T) {
	r := head(1, 0).tensor("a", F32, 0)
	r.zeros(32 - r.Len()%32).zeros(4)
	f, err := Parse(bytes.NewReader(r.Bytes()), int64(r.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if ti := f.Tensors[0]; len(ti.Shape) != 1 || ti.Shape[0] != 1 || ti.Bytes != 4 {
		t.Errorf("scalar: shape %v of %d bytes, want [1] of 4", ti.Shape, ti.Bytes)
	}
}
