package main

import (
	"os"
	"strings"
	"testing"

	"leat/engine"
	"leat/vk/vktest"
)

const demo = "../../cmd/leat/demo/leat-demo-q4_k_m.gguf"

func TestGenerate(t *testing.T) {
	vktest.Open(t) // skips where there is none
	var out strings.Builder
	if err := generate(t.Context(), &out, demo, "Once upon a time", engine.Params{MaxTokens: 8}); err != nil {
		t.Fatal(err)
	}
	if want := ", there was a little boy named Tim\n"; out.String() != want {
		t.Errorf("found %q, want %q", out.String(), want)
	}
}

// The README shows the body of generate, and both must stay the same.
func TestREADME(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```go\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("README.md has no Go block")
	}
	for line := range strings.Lines(block) {
		if !strings.Contains(string(source), strings.TrimSpace(line)) {
			t.Errorf("README.md has a line that main.go has not: %s", line)
		}
	}
}
