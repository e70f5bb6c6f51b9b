//go:build unix

package pack_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leat/decompose/pack"
)

// A pipe or a device in place of any file of a pack, or of a model, is refused before it is opened: a pipe without a
// writer would wait for ever.
func TestKinds(t *testing.T) {
	dir := smallPack(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 6 {
		t.Fatalf("found %d files in a pack", len(entries))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if err := os.Rename(path, path+".kept"); err != nil {
			t.Fatal(err)
		}
		for kind, make := range map[string]func() error{
			"a pipe":   func() error { return syscall.Mkfifo(path, 0o600) },
			"a device": func() error { return os.Symlink("/dev/zero", path) },
			"a folder": func() error { return os.Mkdir(path, 0o700) },
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			if _, err := pack.Open(dir); err == nil || !strings.Contains(err.Error(), "wanted a regular file") {
				t.Errorf("%s for %s: error %v", kind, e.Name(), err)
			}
			if err := pack.Verify(context.Background(), dir, nil); err == nil || !strings.Contains(err.Error(), "wanted a regular file") {
				t.Errorf("verify: %s for %s: error %v", kind, e.Name(), err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(path+".kept", path); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "m.gguf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null"} {
		if _, err := pack.Open(path); err == nil || !strings.Contains(err.Error(), "want a regular file") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
