package pack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose"
	"leat/decompose/pack"
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
