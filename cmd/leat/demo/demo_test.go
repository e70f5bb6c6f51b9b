package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path, err := Path(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Path(dir)
	if err != nil || again != path {
		t.Fatalf("second Path = %q, %v, want %q", again, err, path)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("a whole file was written again")
	}
}

func TestPathRepairs(t *testing.T) {
	dir := t.TempDir()
	path, err := Path(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, model[:1000], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Path(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, model) {
		t.Error("a truncated file was kept")
	}
}

func TestPathAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Path(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("%d files left, want 1: %v", len(entries), entries)
	}
}

func TestPathUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Path(filepath.Join(file, "dir")); err == nil {
		t.Error("no error where the folder can't be made")
	}
}
