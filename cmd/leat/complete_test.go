package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/engine"
)

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a.gguf", "b.GGUF", "notes.txt", "pack/manifest.json", "models/c.gguf", ".hidden/d.gguf", "demos.gguf"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	sep := string(filepath.Separator)
	for _, c := range []struct {
		name string
		line []string
		want []string
	}{
		{"every model", []string{"run", ""}, []string{"demo", "a.gguf", "b.GGUF", "demos.gguf", "models" + sep, "pack"}},
		{"the demo and a file", []string{"run", "dem"}, []string{"demo", "demos.gguf"}},
		{"inside a folder", []string{"tokenize", "models" + sep}, []string{"models" + sep + "c.gguf"}},
		{"no folder", []string{"run", "nowhere" + sep}, nil},
		{"hidden, where asked for", []string{"run", ".h"}, []string{".hidden" + sep}},
		{"a pack", []string{"verify", ""}, []string{"models" + sep, "pack"}},
		{"a decomposition's input", []string{"decompose", ""}, []string{"demo", "a.gguf", "b.GGUF", "demos.gguf", "models" + sep}},
		{"a model to tune for", []string{"doctor", "--tune", "pa"}, []string{"pack"}},
		{"no argument", []string{"devices", ""}, nil},
		{"the pacer", []string{"run", "--pace", ""}, []string{"auto", "off"}},
		{"which experts stay", []string{"run", "--expert-cache", ""}, engine.ExpertPolicies()},
		{"a flag's words", []string{"run", "--kv-type", ""}, engine.KVTypes()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := completions(t, c.line); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
	t.Run("tiers", func(t *testing.T) {
		got := completions(t, []string{"bench", "--tier", ""})
		if !slices.Contains(got, "rtx3060") || !slices.Contains(got, "all") {
			t.Errorf("found %q", got)
		}
	})
	t.Run("GPUs", func(t *testing.T) {
		got := completions(t, []string{"plan", "--gpu", ""})
		if !slices.Contains(got, "RTX 3060") || !slices.Contains(got, "list") {
			t.Errorf("found %q", got)
		}
	})
	t.Run("numbers and texts", func(t *testing.T) {
		for _, c := range newRootCmd(&app{}).Commands() {
			for _, f := range flagsOf(c) {
				if f.Value.Type() == "bool" || slices.Contains(fileFlags, f.Name) || f.Name == "device" {
					continue
				}
				for _, word := range completions(t, []string{c.Name(), "--" + f.Name, ""}) {
					if word == "a.gguf" || word == "notes.txt" {
						t.Errorf("leat %s --%s offers files", c.Name(), f.Name)
					}
				}
			}
		}
	})
	t.Run("devices", func(t *testing.T) {
		if !hasDevice() {
			t.Skip("no Vulkan driver")
		}
		if got := completions(t, []string{"run", "--device", ""}); len(got) == 0 || got[0] != "0" {
			t.Errorf("found %q, want numbers from 0", got)
		}
	})
}

// completions are the words that the shells are given, without their descriptions.
func completions(t *testing.T, line []string) (words []string) {
	var out, errw strings.Builder
	if code := newApp(strings.NewReader(""), &out, &errw).run(context.Background(), append([]string{"__complete"}, line...)); code != 0 {
		t.Fatalf("exit code %d: %s", code, errw.String())
	}
	const files = "ShellCompDirectiveDefault" // the shell would offer all there are
	if strings.Contains(errw.String(), files) && !strings.HasPrefix(line[0], "-") {
		words = append(words, "notes.txt")
	}
	for row := range strings.Lines(out.String()) {
		if row[0] == ':' || strings.HasPrefix(row, "_activeHelp_") { // the directive
			continue
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		words = append(words, word)
	}
	return words
}
