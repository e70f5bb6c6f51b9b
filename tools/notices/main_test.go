package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLicences(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"plain", "LICENSE", "LICENSE"},
		{"with an extension", "licence.txt", "licence.txt"},
		{"a notice", "NOTICE", "NOTICE"},
		{"code that checks licences", "license.go", ""},
		{"none", "README.md", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			files, err := licences(dir)
			if (err == nil) != (c.want != "") || c.want != "" && filepath.Base(files[0]) != c.want {
				t.Errorf("found %v, %v; want %q", files, err, c.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	t.Chdir("../..")
	out := filepath.Join(t.TempDir(), "licences.txt")
	if err := write(out, []string{"linux/amd64", "windows/amd64"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// mousetrap is linked on Windows only.
	for _, want := range []string{"The Go standard library", "github.com/ebitengine/purego", "github.com/inconshreveable/mousetrap"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing", want)
		}
	}
}
