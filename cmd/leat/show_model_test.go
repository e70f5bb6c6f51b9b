package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/gguf"
	"leat/tools/synth/synthetic"
)

// hollow writes a model of 430 GiB in 9 files, which take little on disk: its weights are holes. It returns the path of the first file.
func hollow(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	o := synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "bf16", Hollow: true, Shards: 9, Shape: synthetic.Shape{
		BlockCount: 94, EmbeddingLength: 4096, HeadCount: 64, ExpertFeedForwardLength: 1536, VocabSize: 1 << 18,
	}}
	if err := synthetic.Write(filepath.Join(dir, "big.gguf"), o); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(paths) != 9 {
		t.Fatalf("found %d files, error %v", len(paths), err)
	}
	return paths[0]
}

// show runs leat show.
func show(t testing.TB, args ...string) string {
	t.Helper()
	var out, errw bytes.Buffer
	if code := newApp(strings.NewReader(""), &out, &errw).run(context.Background(), append([]string{"show", "--no-cache"}, args...)); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errw.String())
	}
	return out.String()
}

// A model of hundreds of GiB is shown whole, from its headers.
func TestShowLargeModel(t *testing.T) {
	path := hollow(t)
	var r showReport
	if err := json.Unmarshal([]byte(show(t, path, "--json", "--vram", "80GiB", "--ram", "100GiB")), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Runs || r.Files != 9 || r.Bytes < 400e9 || r.Tokenizer.Tokens != 1<<18 || r.Shape.Experts != 128 || !strings.Contains(r.Fit.Text, "stay on disk") {
		t.Errorf("runs: %t %s, %d files, %d bytes, %d tokens, %d experts, %q", r.Runs, r.Lacks, r.Files, r.Bytes, r.Tokenizer.Tokens, r.Shape.Experts, r.Fit.Text)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(r.Tensors) != len(f.Tensors) || len(r.Metadata) != len(f.Keys()) {
		t.Errorf("found %d tensors and %d keys, wanted %d and %d", len(r.Tensors), len(r.Metadata), len(f.Tensors), len(f.Keys()))
	}
	for _, got := range r.Tensors {
		if want, ok := f.Tensor(got.Name); !ok || got.Bytes != want.Bytes || got.Type != want.Type.String() || len(got.Shape) != len(want.Shape) || got.Shape[0] != want.Shape[0] {
			t.Errorf("found %+v, wanted %+v", got, want)
		}
	}
}

// BenchmarkShow is the time that a model of hundreds of GiB takes.
func BenchmarkShow(b *testing.B) {
	path := hollow(b)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("the first of 9 files has %s", formatSize(info.Size()))
	for b.Loop() {
		show(b, path, "--vram", "80GiB")
	}
}
