package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose"
	"leat/internal/output"
	"leat/tools/synth/synthetic"
)

// writing lists the commands with flags that name a file to write, and those flags.
var writing = []struct {
	args  []string // $M is the model, $T a text
	flags []string
}{
	{[]string{"eval", "$M", "--tokens", "1"}, []string{"logits", "trace-experts"}},
	{[]string{"perplexity", "$M", "-f", "$T"}, []string{"trace-experts"}},
	{[]string{"run", "$M", "-f", "$T", "--system-file", "$S"}, []string{"trace-experts"}},
	{[]string{"bench", "$M"}, []string{"svg", "timeline", "trace", "experts", "cpuprofile"}},
}

// inputsFolder has a model in shards, the same as a pack, other names of them, and texts.
func inputsFolder(t *testing.T) (dir string, all map[string]string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(synthetic.Write(at("m.gguf"), synthetic.Options{Arch: "qwen3moe", Shards: 2, Shape: synthetic.Shape{BlockCount: 1}}))
	_, err := decompose.Run(t.Context(), at("m-00001-of-00002.gguf"), at("pack"), decompose.Options{})
	must(err)
	must(os.WriteFile(at("text"), []byte("Once upon a time"), 0o644))
	must(os.WriteFile(at("system"), []byte("Be brief."), 0o644))
	must(os.Link(at("m-00002-of-00002.gguf"), at("hard")))
	if err := os.Symlink(at("m-00001-of-00002.gguf"), at("link")); err != nil {
		t.Logf("no links here: %v", err)
	}
	return dir, contents(t, dir)
}

// contents maps each file below dir to its bytes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestResultsSpareInputs asks each command to write over each file it reads, by each flag, before any device is looked for.
func TestResultsSpareInputs(t *testing.T) {
	dir, before := inputsFolder(t)
	for _, model := range []string{"m-00001-of-00002.gguf", "pack"} {
		for _, c := range writing {
			args := slices.Clone(c.args)
			for i := range args {
				args[i] = strings.NewReplacer("$M", filepath.Join(dir, model), "$T", filepath.Join(dir, "text"), "$S", filepath.Join(dir, "system")).Replace(args[i])
			}
			for path := range before {
				rel, _ := filepath.Rel(dir, path)
				if !strings.HasPrefix(rel, "pack") != (model != "pack") || rel == "text" && !slices.Contains(c.args, "$T") || rel == "system" && !slices.Contains(c.args, "$S") {
					continue // this command doesn't read that
				}
				for _, flag := range c.flags {
					_, stderr, code := leat(t, append(args, "--"+flag, path)...)
					if code != exitFailure || !strings.Contains(stderr, "this command reads it") {
						t.Errorf("%s --%s %s: exit %d, %q", args[0], flag, rel, code, stderr)
					}
				}
			}
		}
	}
	for path, data := range contents(t, dir) {
		if before[path] != data {
			t.Errorf("%s is changed, or new", path)
		}
	}
}

// TestResultsOfNothing: where the model can't be loaded, what stands under a result's name stays.
func TestResultsOfNothing(t *testing.T) {
	dir := t.TempDir()
	bad, kept := filepath.Join(dir, "bad.gguf"), filepath.Join(dir, "kept")
	for _, path := range []string{bad, kept, filepath.Join(dir, "text")} {
		if err := os.WriteFile(path, []byte("GGUF, but no more of it"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range writing {
		args := slices.Clone(c.args)
		for i := range args {
			args[i] = strings.NewReplacer("$M", bad, "$T", filepath.Join(dir, "text"), "$S", filepath.Join(dir, "text")).Replace(args[i])
		}
		for _, flag := range c.flags {
			for _, name := range []string{kept, filepath.Join(dir, "new")} {
				if _, stderr, code := leat(t, append(args, "--"+flag, name)...); code != exitFailure {
					t.Errorf("%s --%s: exit %d, %q", args[0], flag, code, stderr)
				}
			}
		}
	}
	for path, data := range contents(t, dir) {
		if data != "GGUF, but no more of it" {
			t.Errorf("%s has %q", path, data)
		}
	}
}

// TestResultsTogether: two results never share a file.
func TestResultsTogether(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	for _, args := range [][]string{
		{"bench", "demo", "--svg", out, "--trace", filepath.Join(dir, ".", "out")},
		{"bench", "demo", "--svg", "-", "--timeline", "-"},
		{"eval", "demo", "--tokens", "1", "--logits", out, "--trace-experts", out},
	} {
		if _, stderr, code := leat(t, args...); code != exitUsage || !strings.Contains(stderr, "each needs a file of its own") {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}

// TestResultToStdout: "-" has the result alone; what else was for stdout goes to stderr.
func TestResultToStdout(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errw strings.Builder
	a := newApp(strings.NewReader(""), &out, &errw)
	r, err := a.newResults(nil, result{flag: "svg", path: output.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(a.out, "a table")
	if err := r.fill(output.Stdout, func(w io.Writer) error { _, err := io.WriteString(w, "a picture"); return err }); err != nil {
		t.Fatal(err)
	}
	if out.String() != "a picture" || errw.String() != "a table" {
		t.Errorf("stdout has %q, stderr %q", &out, &errw)
	}
	if left := contents(t, "."); len(left) > 0 {
		t.Errorf("files are there: %v", left)
	}
}

// TestLater: a file that is written bit by bit is there at the end, and only where all went well.
func TestLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	l := &later{r: &results{paths: []string{path}}, path: path}
	if err := l.finish(); err != nil || len(contents(t, filepath.Dir(path))) > 0 {
		t.Errorf("with nothing written: %v, %v", err, contents(t, filepath.Dir(path)))
	}
	for _, text := range []string{"one ", "two"} {
		if _, err := io.WriteString(l, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there before its end: %v", err)
	}
	if err := l.finish(); err != nil || contents(t, filepath.Dir(path))[path] != "one two" {
		t.Errorf("%v, %v", err, contents(t, filepath.Dir(path)))
	}
}

// Every flag that names a file to write is tested above: its usage says that it writes or draws.
func TestWritingFlags(t *testing.T) {
	known := map[string]bool{}
	for _, c := range writing {
		for _, flag := range c.flags {
			known[c.args[0]+" --"+flag] = true
		}
	}
	found := 0
	for _, c := range newRootCmd(&app{}).Commands() {
		for _, flag := range flagsOf(c) {
			said := false
			for _, word := range []string{"write", "draw", "file for"} {
				said = said || strings.HasPrefix(flag.Usage, word)
			}
			if said {
				found++
				if !known[c.Name()+" --"+flag.Name] {
					t.Errorf("leat %s --%s writes a file: it needs a row in writing", c.Name(), flag.Name)
				}
			}
		}
	}
	if found != len(known) {
		t.Errorf("%d flags write files, want %d", found, len(known))
	}
}
