package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/shaders"
	"leat/tools/gensum"
)

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

// What is committed was made from the sources that are; nightly, build.sh compiles all of it again and compares.
func TestCommittedFilesAreFresh(t *testing.T) {
	var out, errw bytes.Buffer
	if code := run([]string{"-check", "-glslc", "none"}, &out, &errw); code != 0 {
		t.Errorf("genspv -check exits with %d: %s", code, errw.String())
	}
}

// copySources makes a folder that holds all sources and, of the compiled files, clamp.spv with its sum.
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
			write(t, filepath.Join(dir, filepath.Base(f)), read(t, f))
		}
	}
	sums, err := gensum.Read(filepath.Join(from, "spv.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := gensum.Write(filepath.Join(dir, "spv.sum"), map[string]gensum.Sum{"clamp.spv": sums["clamp.spv"]}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "spv"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "spv", "clamp.spv"), clampCode(t))
	return dir
}

func clampCode(t *testing.T) []byte {
	t.Helper()
	clamp, ok := shaders.Lookup("clamp")
	if !ok {
		t.Fatal("the table has no clamp")
	}
	return clamp.SPIRV
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// edit replaces a part of a file, which must be there.
func edit(t *testing.T, path, old, by string) {
	t.Helper()
	text := read(t, path)
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s has no %q", path, old)
	}
	write(t, path, bytes.Replace(text, []byte(old), []byte(by), 1))
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// No compiler is needed to see that a file was not made from its sources.
func TestCheckBySums(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(t *testing.T, dir string)
		kernel string
		want   string // "" where the check passes
	}{
		{"fresh", func(*testing.T, string) {}, "clamp", ""},
		{"source changed", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "clamp.comp"), "a.Min, a.Max)", "a.Max, a.Min)")
		}, "clamp", "spv/clamp.spv"},
		{"include changed", func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "memory.glsl"), "float", "highp float") }, "clamp", "spv/clamp.spv"},
		{"file cut short", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spv", "clamp.spv"), clampCode(t)[:100]) }, "clamp", "spv/clamp.spv"},
		{"sum missing", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spv.sum"), nil) }, "clamp", "spv/clamp.spv"},
		{"sum broken", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spv.sum"), []byte("clamp.spv\n")) }, "clamp", "line 1"},
		{"file missing", func(*testing.T, string) {}, "rope", "spv/rope.spv is missing"},
		{"include missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "memory.glsl")); err != nil {
				t.Fatal(err)
			}
		}, "clamp", "clamp.comp includes memory.glsl"},
		{"no such kernel", func(*testing.T, string) {}, "nonsense", `"nonsense"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copySources(t)
			c.spoil(t, dir)
			wantRun(t, c.want, "-check", "-dir", dir, "-name", c.kernel, "-glslc", "none")
		})
	}
}

// wantRun runs genspv, which must succeed, or fail with want in its error where that is not "".
func wantRun(t *testing.T, want string, args ...string) (out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	switch {
	case want == "" && code != 0:
		t.Errorf("exit %d, want 0: %s", code, stderr.String())
	case want != "" && (code != 1 || !strings.Contains(stderr.String(), want)):
		t.Errorf("exit %d, want 1 and %q: %s", code, want, stderr.String())
	}
	return stdout.String()
}

// With -all the committed bytes themselves are compared, whatever the sums say.
func TestCheckAll(t *testing.T) {
	needGlslc(t)
	dir := copySources(t)
	all := []string{"-check", "-all", "-dir", dir, "-name", "clamp"}
	wantRun(t, "", all...)
	spoiled := append(slices.Clone(clampCode(t)), 0, 0, 0, 0)
	write(t, filepath.Join(dir, "spv", "clamp.spv"), spoiled)
	sums, err := gensum.Read(filepath.Join(dir, "spv.sum"))
	if err != nil {
		t.Fatal(err)
	}
	sums["clamp.spv"] = gensum.Sum{From: sums["clamp.spv"].From, Made: gensum.Hash(spoiled)}
	if err := gensum.Write(filepath.Join(dir, "spv.sum"), sums); err != nil {
		t.Fatal(err)
	}
	wantRun(t, "", "-check", "-dir", dir, "-name", "clamp")
	wantRun(t, "differs from what clamp.comp gives", all...)
	write(t, filepath.Join(dir, "clamp.comp"), []byte("#version 460\nvoid main() { x }\n"))
	wantRun(t, "clamp.comp:2", all...)
}

// Only what changed is compiled, and is fresh after.
func TestCompilesWhatChanged(t *testing.T) {
	needGlslc(t)
	dir := copySources(t)
	gen := []string{"-dir", dir, "-name", "c"} // checksum, clamp and cpy
	for i, want := range []string{"3 kernels, 2 of them compiled", "3 kernels, 0 of them compiled", "3 kernels, 1 of them compiled"} {
		if i == 2 {
			edit(t, filepath.Join(dir, "clamp.comp"), "a.Min, a.Max)", "a.Max, a.Min)")
		}
		if out := wantRun(t, "", gen...); !strings.Contains(out, want) {
			t.Errorf("run %d says %q, want %q", i+1, out, want)
		}
	}
	wantRun(t, "", append(gen, "-check", "-glslc", "none")...)
	wantRun(t, "want -glslc-newer", "-dir", dir, "-name", "flash_attn_cm_f16")
}

// A file that every source includes makes an error for each: some are shown, all are counted.
func TestFewErrors(t *testing.T) {
	dir := copySources(t)
	edit(t, filepath.Join(dir, "memory.glsl"), "float", "highp float")
	var out, errw bytes.Buffer
	code := run([]string{"-check", "-dir", dir}, &out, &errw)
	if text := errw.String(); code != 1 || strings.Count(text, "run ./build.sh shaders") != 8 || !strings.Contains(text, "more kernels") {
		t.Errorf("exit %d: %s", code, text)
	}
}

func TestStaleFiles(t *testing.T) {
	dir := copySources(t)
	left := filepath.Join(dir, "spv", "old.spv")
	write(t, left, nil)
	sums := map[string]gensum.Sum{"clamp.spv": {}, "older.spv": {}}
	err := stale(options{dir: dir, check: true}, sums)
	if err == nil || !strings.Contains(err.Error(), "old.spv") || !strings.Contains(err.Error(), "older.spv") || len(sums) != 2 {
		t.Errorf("check of a folder with old.spv and a sum of older.spv: %v, want an error naming both", err)
	}
	if err := stale(options{dir: dir}, sums); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); err == nil || len(sums) != 1 {
		t.Errorf("old.spv is still there, or sums are wrong: %v", sums)
	}
	if _, err := os.Stat(filepath.Join(dir, "spv", "clamp.spv")); err != nil {
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
