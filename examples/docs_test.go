package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leat/vk/vktest"
)

// The program in docs/embedding.md builds and runs as it stands there.
func TestEmbedding(t *testing.T) {
	text, err := os.ReadFile("../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, rest, ok := strings.Cut(program, "```")
	if !ok {
		t.Fatal("docs/embedding.md has no program")
	}
	binary := build(t, program)
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

// build compiles a program that lies in no file of this module.
func build(t *testing.T, program string) (binary string) {
	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	binary = filepath.Join(dir, "program.exe")
	here, err := filepath.Abs("embedding/main.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{here: source}})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{source: []byte(program), overlay: replace} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./embedding").CombinedOutput(); err != nil {
		t.Fatalf("build the program of docs/embedding.md: %v\n%s", err, out)
	}
	return binary
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
