package gguf

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// writeShards makes n shards of the sample tensors in dir and returns their paths.
func writeShards(t *testing.T, dir string, n int, change func(i int, md *Metadata)) []string {
	t.Helper()
	tensors := sampleTensors()
	var paths []string
	for i := range n {
		md := NewMetadata()
		if i == 0 {
			set(t, md, "general.architecture", "llama")
		}
		set(t, md, keySplitNo, uint16(i))
		set(t, md, keySplitCount, uint16(n))
		set(t, md, keySplitTensors, int32(len(tensors)))
		if change != nil {
			change(i, md)
		}
		var part []WriteTensor
		for j := i; j < len(tensors); j += n {
			part = append(part, tensors[j])
		}
		path := ShardPath(filepath.Join(dir, "model"), i, n)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Write(file, md, part, WriteOptions{}), file.Close()); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func set(t *testing.T, md *Metadata, k string, v any) {
	t.Helper()
	if err := md.Set(k, v); err != nil {
		t.Fatal(err)
	}
}

func TestOpenAnyShard(t *testing.T) {
	paths := writeShards(t, t.TempDir(), 3, nil)
	for i, p := range paths {
		f, err := Open(p)
		if err != nil {
			t.Fatalf("shard %d: %v", i, err)
		}
		if !slices.Equal(f.Paths, paths) || f.Architecture() != "llama" {
			t.Errorf("shard %d: paths %q, architecture %q", i, f.Paths, f.Architecture())
		}
		if !slices.Equal(f.Keys(), []string{"general.architecture"}) {
			t.Errorf("shard %d: keys %q, want the first shard's without split.*", i, f.Keys())
		}
		if len(f.Tensors) != 4 {
			t.Fatalf("shard %d: %d tensors, want 4", i, len(f.Tensors))
		}
		for j, w := range sampleTensors() {
			ti, ok := f.Tensor(w.Name)
			if !ok || ti.Shard != j%3 {
				t.Fatalf("shard %d: tensor %q: %+v", i, w.Name, ti)
			}
			got, err := f.ReadTensor(ti)
			want, _ := io.ReadAll(w.Data)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("shard %d: tensor %q: other bytes came back (error %v)", i, w.Name, err)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Errorf("close twice: %v", err)
		}
		if err := f.ReadAt(0, make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after Close: error %v, want os.ErrClosed", err)
		}
	}
}

func TestOpenRefusesShards(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(i int, md *Metadata)
		broken func(paths []string) error
		want   string
	}{
		{"one is missing", nil, func(p []string) error { return os.Remove(p[1]) }, "open shard 2 of 3: found no file"},
		{"a name that is not a shard's", nil, func(p []string) error { return os.Rename(p[0], filepath.Join(filepath.Dir(p[0]), "x.gguf")) }, "name of a shard"},
		{"one says another number", func(i int, md *Metadata) {
			if i == 2 {
				md.Set(keySplitNo, uint16(1))
			}
		}, nil, "split.no: found 1, want 2"},
		{"one says another count", func(i int, md *Metadata) {
			if i == 1 {
				md.Set(keySplitCount, uint16(4))
			}
		}, nil, "split.count: found 4, want 3"},
		{"one has no count", func(i int, md *Metadata) {
			if i == 1 {
				md.Delete(keySplitCount)
			}
		}, nil, "split.count: found none, want 3"},
		{"number beyond the count", func(i int, md *Metadata) {
			if i == 0 {
				md.Set(keySplitNo, uint16(3))
			}
		}, nil, "split.no: found 3, want 0 to 2"},
		{"count is text", func(i int, md *Metadata) {
			if i == 0 {
				md.Set(keySplitCount, "three")
			}
		}, nil, "split.count: found no number"},
		{"another number of tensors", func(i int, md *Metadata) { md.Set(keySplitTensors, int32(9)) }, nil, "split.tensors.count: found 9"},
		{"one is cut short", nil, func(p []string) error { return os.Truncate(p[2], 40) }, "00003-of-00003.gguf: "},
		{"a tensor in two", nil, func(p []string) error {
			md := NewMetadata()
			md.Set(keySplitNo, uint16(2))
			md.Set(keySplitCount, uint16(3))
			file, err := os.Create(p[2])
			if err != nil {
				return err
			}
			return errors.Join(Write(file, md, sampleTensors()[1:2], WriteOptions{}), file.Close())
		}, "it in an earlier shard too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths := writeShards(t, t.TempDir(), 3, c.change)
			open := paths[0]
			if c.broken != nil {
				if err := c.broken(paths); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(open); err != nil {
				open = filepath.Join(filepath.Dir(open), "x.gguf")
			}
			_, err := Open(open)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if missing := c.name == "one is missing"; missing != errors.Is(err, fs.ErrNotExist) || missing == errors.Is(err, ErrFormat) {
				t.Errorf("error %v: ErrNotExist %v, ErrFormat %v", err, errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrFormat))
			}
		})
	}
}

func TestOpenErrorNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.gguf")
	if err := os.WriteFile(path, []byte("not a model"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	want := path + `: offset 0: magic: found "not ", want "GGUF"`
	if err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "a directory") {
		t.Errorf("a directory: error %v", err)
	}
	if _, err := Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: error %v", err)
	}
}

func TestReadAtIsFullOrFails(t *testing.T) {
	b := sample(t, 3, NewMetadata())
	f, err := Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ReadAt(0, make([]byte, 8), int64(len(b))-4); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: error %v", err)
	}
	if err := f.ReadAt(0, make([]byte, 4), int64(len(b))-4); err != nil {
		t.Errorf("at the end: error %v", err)
	}
	if err := f.ReadAt(1, make([]byte, 4), 0); err == nil {
		t.Error("shard 1 of 1: no error")
	}
}

// Every file of the test data opens, and written again it reads the same.
func TestOpenTestData(t *testing.T) {
	dir := testdata.Dir(t)
	for _, pattern := range []string{"models/*.gguf", "vendor/models/*.gguf", "vendor/vocab/*.gguf"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(paths), err)
		}
		for _, p := range paths {
			t.Run(filepath.Base(p), func(t *testing.T) { reopen(t, p) })
		}
	}
}

func reopen(t *testing.T, path string) {
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Architecture() == "" || len(f.Keys()) < 5 {
		t.Errorf("architecture %q, keys %q", f.Architecture(), f.Keys())
	}
	var tensors []WriteTensor
	for _, ti := range f.Tensors {
		tensors = append(tensors, WriteTensor{ti.Name, ti.Type, ti.Shape, io.NewSectionReader(fileAt{f, ti.Shard}, ti.Off, ti.Bytes)})
	}
	var again bytes.Buffer
	if err := Write(&again, f.Metadata, tensors, WriteOptions{Version: f.Version, Alignment: f.Alignment}); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Writers differ in the padding after the last byte that matters.
	got, want := bytes.TrimRight(again.Bytes(), "\x00"), bytes.TrimRight(was, "\x00")
	if !bytes.Equal(got, want) {
		t.Errorf("written again: %d bytes, not the same %d", len(got), len(want))
	}
}

type fileAt struct {
	f     *File
	shard int
}

func (f fileAt) ReadAt(p []byte, off int64) (int, error) {
	if err := f.f.ReadAt(f.shard, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}
