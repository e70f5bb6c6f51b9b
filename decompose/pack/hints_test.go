package pack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leat/decompose"
	"leat/decompose/pack"
	"leat/gguf"
	"leat/tools/synth/synthetic"
)

// smallPack decomposes a model that the project writes by itself.
func smallPack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "pack")
	if err := synthetic.Write(in, synthetic.Options{Arch: "mixtral", Shape: synthetic.Shape{BlockCount: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := decompose.Run(context.Background(), in, out, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// A folder that is no pack: the hint says what lies in it.
func TestFolderHints(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}, "the shards of a model: give the first one, DIR/m-00001-of-00002.gguf"},
		{[]string{"m.gguf", "README.md"}, "give that file, DIR/m.gguf"},
		{[]string{"a.gguf", "b.GGUF"}, "several models: give a file of one, such as DIR/a.gguf"},
		{[]string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "n-00001-of-00001.gguf"}, "several models"},
		{[]string{"m.gguf.part1of2", "m.gguf.part2of2"}, "join them"},
		{[]string{"m.gguf-split-a", "m.gguf-split-b"}, "join them"},
		{[]string{"config.json", "model-00001-of-00002.safetensors"}, "convert it to GGUF"},
		{[]string{"config.json", "pytorch_model.bin"}, "convert it to GGUF"},
		{[]string{"notes.txt"}, "make one with: leat decompose"},
		{nil, "make one with: leat decompose"},
	} {
		dir := t.TempDir()
		for _, name := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := pack.Open(dir)
		var h interface{ Hint() string }
		if want := strings.ReplaceAll(c.want, "DIR", dir); !errors.As(err, &h) || !strings.Contains(filepath.ToSlash(h.Hint()), filepath.ToSlash(want)) {
			t.Errorf("%q: error %v, wanted a hint with %q", c.files, err, want)
		}
	}
}

// A file of a pack is no model: the hint says to give the folder.
func TestFileOfAPack(t *testing.T) {
	dir := smallPack(t)
	for _, name := range []string{pack.ManifestName, "layer_000.bin", "experts_000.bin"} {
		_, err := pack.Open(filepath.Join(dir, name))
		var h interface{ Hint() string }
		if !errors.As(err, &h) || !strings.Contains(h.Hint(), "give the pack's folder, "+dir) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A few bytes of header and a hole claim as many experts as they like: the units for them aren't made.
func TestSparseExperts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	md := gguf.NewMetadata()
	if err := md.Set("general.architecture", "llama"); err != nil {
		t.Fatal(err)
	}
	const layers, experts, bytes = 30, 4096, 128
	var tensors []gguf.WriteTensor
	for l := range layers {
		for _, stack := range []string{"gate", "up", "down"} {
			tensors = append(tensors, gguf.WriteTensor{Name: fmt.Sprintf("blk.%d.ffn_%s_exps.weight", l, stack), Type: gguf.F32, Shape: []int64{experts, 1, bytes / 4}, Data: io.LimitReader(zeros{}, experts*bytes)})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = gguf.Write(f, md, tensors, gguf.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = pack.Open(path)
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || !strings.Contains(err.Error(), "expert slices") || got > 256 {
		t.Errorf("%d MiB allocated, error %v", got, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
