package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// sparse is a file of a few bytes and a hole after them.
type sparse []byte

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s)) {
		copy(p, s[off:])
	}
	return len(p), nil
}

// A header takes memory for what it holds, not for what it says it holds; a hole that reads as zeros doesn't
// count as content.
func TestHeaderMemory(t *testing.T) {
	const size = 1 << 40
	array := func(t ValueType, n uint64) *raw {
		return head(0, 1).str("k").u32(uint32(Array)).u32(uint32(t)).u64(n)
	}
	for _, c := range []struct {
		name string
		r    *raw
		most uint64 // MiB allocated in all, garbage included
	}{
		{"strings", array(String, 7<<20), 64},
		{"as many strings as the file has room for", array(String, size/9), 64},
		{"arrays", array(Array, 5<<20), 512},
		{"numbers that the file has no room for", array(Float64, size), 64},
		{"one long string", head(0, 1).str("k").u32(uint32(String)).u64(60 << 20), 512},
		{"keys", head(0, 4<<20), 64},
		{"tensors", head(2<<20, 0), 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Parse(sparse(c.r.Bytes()), size)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > c.most {
				t.Errorf("%d MiB for a file of %d bytes and a hole, wanted %d at most", got, c.r.Len(), c.most)
			}
			if err == nil && c.name != "one long string" {
				t.Errorf("found no error, and %d keys", len(f.Keys()))
			}
		})
	}
}

// Files that were joined are refused, wherever the second begins: its tensors would be ignored.
func TestJoinedFiles(t *testing.T) {
	one := sample(t, 3, everyValue(t, 5))
	vocabulary := head(0, 1).str("k").u32(uint32(Uint32)).u32(7).Bytes()
	for name, first := range map[string][]byte{"tensors": one, "no tensors": vocabulary, "padding": append(bytes.Clone(one), make([]byte, 64)...)} {
		_, err := Parse(bytes.NewReader(append(bytes.Clone(first), one...)), int64(len(first)+len(one)))
		var h interface{ Hint() string }
		if !errors.Is(err, ErrFormat) || !errors.As(err, &h) || !strings.Contains(h.Hint(), "shards") {
			t.Errorf("%s: error %v", name, err)
		}
		padded := append(bytes.Clone(first), make([]byte, 5000)...)
		if _, err := Parse(bytes.NewReader(padded), int64(len(padded))); err != nil {
			t.Errorf("%s: zeros after the file: %v", name, err)
		}
	}
}

// The name of a file that can't be read says of what it may be a part, or that more of it is to come.
func TestHintsByName(t *testing.T) {
	dir := t.TempDir()
	whole := sample(t, 3, everyValue(t, 5))
	for _, c := range []struct{ name, want string }{
		{"m.gguf.part1of2", "into m.gguf,"}, {"m.gguf-split-a", "into m.gguf,"}, {"m.gguf.001", "into m.gguf,"}, {"m.gguf.partaa", "into m.gguf,"}, {"m.gguf.aa", "into m.gguf,"},
		{"m.gguf.part", "unfinished download"}, {"m.gguf.incomplete", "unfinished download"}, {"m.gguf.crdownload", "unfinished download"}, {"m.gguf.!qB", "unfinished download"},
	} {
		for half, content := range map[string][]byte{"beginning": whole[:len(whole)-1], "middle": whole[len(whole)/2:]} {
			path := filepath.Join(dir, c.name)
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			var h interface{ Hint() string }
			if !errors.As(err, &h) || !strings.Contains(h.Hint(), c.want) {
				t.Errorf("%s of a file as %s: error %v, wanted a hint with %q", half, c.name, err, c.want)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	var h interface{ Hint() string }
	if want := fmt.Sprintf("the file has %d bytes of the ", len(whole)-1); !errors.As(err, &h) || !strings.Contains(h.Hint(), want) {
		t.Errorf("error %v, wanted a hint with %q", err, want)
	}
	if err := os.WriteFile(path+".aria2", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(path); !errors.As(err, &h) || !strings.Contains(h.Hint(), "m.gguf.aria2 lies beside it") {
		t.Errorf("a file of aria2 beside it: error %v", err)
	}
}
