package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// TestFloat32AsDocumented runs what the documentation gives for logits that don't depend on budgets, under two of them. With
// the default kernels these tokens' logits differ.
func TestFloat32AsDocumented(t *testing.T) {
	root := testdata.Root(t)
	flag := regexp.MustCompile("--disable ([a-z0-9,]+)[`; ]")
	find := func(where, text string) (found string) {
		for line := range strings.Lines(text) {
			if m := flag.FindStringSubmatch(line); m != nil && strings.Contains(line, "float32") {
				found = m[1]
			}
		}
		if found == "" {
			t.Errorf("%s does not say how to have float32", where)
		}
		return found
	}
	help, _, _ := leat(t, "eval", "--help")
	disable := find("eval --help", help)
	for _, name := range []string{"README.md", "docs/embedding.md", "docs/kernels.md", "docs/experts.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := find(name, strings.ReplaceAll(string(text), "\n", " ")); got != disable {
			t.Errorf("%s says --disable %s, eval --help %s", name, got, disable)
		}
	}
	if !hasDevice() {
		t.Skip("no Vulkan driver")
	}
	const text = "Once upon a time, there was a little girl named Lily who loved to play outside in the park with her red ball. One day, she saw a big dog near the tree. The dog was sad and lost."
	ids, stderr, code := leat(t, "tokenize", "demo", "-p", text, "--ids")
	if code != exitOK {
		t.Fatal(stderr)
	}
	var logits [2][]byte
	for i, vram := range []string{"4MiB", "64MiB"} {
		out := filepath.Join(t.TempDir(), "logits")
		if _, stderr, code := leat(t, "eval", "demo", "--tokens", ids, "--logits", out, "--disable", disable, "--vram", vram); code != exitOK {
			t.Fatal(stderr)
		}
		var err error
		if logits[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(logits[0], logits[1]) {
		t.Errorf("with --disable %s the logits depend on --vram", disable)
	}
}
