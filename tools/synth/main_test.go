package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose/pack"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "m.pack")
	only := filepath.Join(dir, "only.pack")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"a model and its pack", []string{"-arch", "qwen3moe", "-o", file, "-pack", folder}, 0, "GB/s"},
		{"a pack alone, from shards", []string{"-shards", "2", "-pack", only}, 0, "only.pack: "},
		{"help", []string{"-h"}, 0, "Example: "},
		{"nothing to write", []string{"-arch", "llama"}, 2, "want -o FILE or -pack DIR"},
		{"an unknown flag", []string{"-colour", "red"}, 2, "-colour"},
		{"an unknown preset", []string{"-preset", "9t", "-o", file}, 1, `preset: found "9t"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(context.Background(), c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, output %q; want %d and %q", code, out.String(), c.code, c.want)
			}
		})
	}
	for _, p := range []string{file, folder, only} {
		m, err := pack.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Units) == 0 {
			t.Errorf("%s: no units", p)
		}
		m.Close()
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left behind: %v (error %v)", left, err)
	}
}
