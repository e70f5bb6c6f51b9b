package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leat/shaders"
)

// madeBy is what compiled the committed files; another release may give other, equally good code.
const madeBy = "shaderc 2023.2"

func needGlslc(t *testing.T) {
	t.Helper()
	why := ""
	if out, err := exec.Command("glslc", "--version").Output(); err != nil {
		why = "glslc does not run: " + err.Error()
	} else if !strings.HasPrefix(string(out), madeBy) {
		why = "glslc is " + strings.SplitN(string(out), "\n", 2)[0] + ", the committed files are made by " + madeBy
	}
	if why == "" {
		return
	}
	if os.Getenv("LEAT_REQUIRE_TOOLS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestCommittedFilesAreFresh(t *testing.T) {
	needGlslc(t)
	if testing.Short() {
		t.Skip("compiles every kernel")
	}
	var out, errw bytes.Buffer
	if code := run([]string{"-check"}, &out, &errw); code != 0 {
		t.Errorf("genspv -check exits with %d: %s", code, errw.String())
	}
}

// copySources makes a folder that holds all sources and, of the compiled files, add.spv.
func copySources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	from, err := findDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.comp", "*.glsl"} {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, filepath.Base(f)), data)
		}
	}
	add, ok := shaders.Lookup("add")
	if !ok {
		t.Fatal("the table has no add")
	}
	if err := os.Mkdir(filepath.Join(dir, "spv"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "spv", "add.spv"), add.SPIRV)
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheckNamesTheDifference(t *testing.T) {
	needGlslc(t)
	add, _ := shaders.Lookup("add")
	for _, c := range []struct {
		name   string
		spoil  func(dir string)
		kernel string
		want   string // "" where the check passes
	}{
		{"fresh", func(string) {}, "add", ""},
		{"source changed", func(dir string) {
			src, err := os.ReadFile(filepath.Join(dir, "add.comp"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "add.comp"), bytes.Replace(src, []byte("f[i] + "), []byte("f[i] - "), 1))
		}, "add", "spv/add.spv"},
		{"file cut short", func(dir string) { write(t, filepath.Join(dir, "spv", "add.spv"), add.SPIRV[:100]) }, "add", "spv/add.spv"},
		{"file missing", func(string) {}, "rope", "spv/rope.spv is missing"},
		{"source broken", func(dir string) {
			write(t, filepath.Join(dir, "add.comp"), []byte("#version 460\nvoid main() { x }\n"))
		}, "add", "add.comp:2"},
		{"no such kernel", func(string) {}, "nonsense", `"nonsense"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copySources(t)
			c.spoil(dir)
			var out, errw bytes.Buffer
			code := run([]string{"-check", "-dir", dir, "-name", c.kernel}, &out, &errw)
			switch {
			case c.want == "" && code != 0:
				t.Errorf("exit %d, want 0: %s", code, errw.String())
			case c.want != "" && (code != 1 || !strings.Contains(errw.String(), c.want)):
				t.Errorf("exit %d, want 1 and %q: %s", code, c.want, errw.String())
			}
		})
	}
}

func TestStaleFiles(t *testing.T) {
	dir := copySources(t)
	left := filepath.Join(dir, "spv", "old.spv")
	write(t, left, nil)
	if err := stale(options{dir: dir, check: true}, shaders.Kernels()); err == nil || !strings.Contains(err.Error(), "old.spv") {
		t.Errorf("check of a folder with old.spv: %v, want an error naming it", err)
	}
	if err := stale(options{dir: dir}, shaders.Kernels()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("old.spv is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "spv", "add.spv")); err != nil {
		t.Error(err)
	}
}

func TestDecorateFmaRefuses(t *testing.T) {
	header := make([]byte, headerBytes)
	for name, code := range map[string][]byte{
		"nothing":            nil,
		"half a word":        append(header[:headerBytes:headerBytes], 1, 0),
		"no length":          append(header[:headerBytes:headerBytes], 1, 0, 0, 0),
		"longer than it is":  append(header[:headerBytes:headerBytes], 1, 0, 2, 0),
		"fma, no decoration": append(header[:headerBytes:headerBytes], opExtInst, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, glslFma, 0, 0, 0),
	} {
		if _, err := decorateFma(code); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
