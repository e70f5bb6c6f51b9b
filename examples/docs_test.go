package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leat/vk/vktest"
)

// The program in docs/embedding.md builds, with the go.mod beside it, and runs as it stands there.
func TestEmbedding(t *testing.T) {
	text := read(t, "docs/embedding.md")
	program, rest := fenced(t, text, "go")
	module, rest := fenced(t, rest, "mod")
	binary := build(t, program, module)
	vktest.Open(t) // skips where there is none
	c := exec.Command(binary, "../cmd/leat/demo/leat-demo-q4_k_m.gguf")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	// The first line names the device: another one may round otherwise.
	device, _, _ := strings.Cut(string(out), " streams ")
	if shown := strings.Contains(rest, device+" streams "); shown && !strings.Contains(rest, indent(string(out))) {
		t.Errorf("docs/embedding.md shows another output than\n%s", out)
	} else if !shown {
		t.Logf("docs/embedding.md shows the output of another device than %s", device)
	}
	if lines := strings.Count(string(out), "\n"); lines < 5 {
		t.Errorf("found %d lines, want 5 or more:\n%s", lines, out)
	}
}

// fenced is the first block of a language in text, and what follows it.
func fenced(t *testing.T, text, language string) (block, rest string) {
	t.Helper()
	_, rest, _ = strings.Cut(text, "```"+language+"\n")
	block, rest, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("docs/embedding.md has no block of %s", language)
	}
	return block, rest
}

// build compiles a program as a module of its own beside this clone. Its go.sum is what "go mod tidy" writes: ours, as both have leat's dependencies.
func build(t *testing.T, program, module string) (binary string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(module, "=> ../leat\n") {
		t.Fatalf("docs/embedding.md: go.mod does not replace leat by a clone:\n%s", module)
	}
	dir := t.TempDir()
	for name, data := range map[string]string{
		"main.go": program, "go.mod": strings.Replace(module, "=> ../leat\n", "=> "+filepath.ToSlash(root)+"\n", 1), "go.sum": string(sums),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary = filepath.Join(dir, "program.exe")
	c := exec.Command("go", "build", "-mod=readonly", "-o", binary, ".")
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build the program of docs/embedding.md: %v\n%s", err, out)
	}
	return binary
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
