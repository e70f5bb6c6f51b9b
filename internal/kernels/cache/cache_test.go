package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func put(t testing.TB, f *Folder, kind, key, text string) {
	t.Helper()
	if err := f.Update(kind, key, func([]byte) ([]byte, error) { return []byte(text), nil }); err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, f *Folder, kind, key, text string) {
	t.Helper()
	if got, err := f.Load(kind, key); string(got) != text || err != nil {
		t.Errorf("%s of %s is %q, %v; want %q", kind, key, got, err, text)
	}
}

func TestFolder(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "new", "folder"))
	want(t, f, "tests", "a", "")
	put(t, f, "tests", "a", "one")
	put(t, f, "tests", "b", "two")
	put(t, f, "tunes", "a", "three")
	want(t, f, "tests", "a", "one")
	want(t, f, "tests", "b", "two")
	want(t, Open(f.Path()), "tunes", "a", "three")
	if err := f.Update("tests", "a", func(old []byte) ([]byte, error) { return append(old, " more"...), nil }); err != nil {
		t.Fatal(err)
	}
	want(t, f, "tests", "a", "one more")
	failed := errors.New("no")
	if err := f.Update("tests", "a", func([]byte) ([]byte, error) { return nil, failed }); err != failed {
		t.Errorf("the error is %v, want that of change", err)
	}
	want(t, f, "tests", "a", "one more")
	for range 2 {
		if err := f.Update("tests", "a", func([]byte) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		want(t, f, "tests", "a", "")
	}
	if n := len(f.Files()); n != 2 {
		t.Errorf("%d files are there, want 2", n)
	}
	if err := f.Update("tests", "big", func([]byte) ([]byte, error) { return make([]byte, MaxBytes+1), nil }); err == nil {
		t.Error("more than MaxBytes are kept")
	}
	left, _ := os.ReadDir(f.Path())
	for _, e := range left {
		if filepath.Ext(e.Name()) != ".bin" && e.Name() != ".lock" {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestNoFolder(t *testing.T) {
	f := Open("")
	put(t, f, "tests", "a", "one")
	want(t, f, "tests", "a", "")
	if f.Path() != "" || f.Files() != nil {
		t.Error("a folder that is none has something")
	}
}

// Whatever byte of a file is wrong, and wherever it ends, it counts as absent, and can be written anew.
func TestDamage(t *testing.T) {
	f := Open(t.TempDir())
	put(t, f, "tests", "key", "what was measured")
	path := f.file("tests", "key")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		var wrong *UnreadableError
		if got, err := f.Load("tests", "key"); got != nil || !errors.As(err, &wrong) {
			t.Errorf("%s: found %q, %v", what, got, err)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x10
		check(fmt.Sprintf("byte %d", i), bad)
		check(fmt.Sprintf("%d bytes", i), good[:i])
	}
	check("one more", append(good, 0))
	if err := os.Truncate(path, MaxBytes+4096); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load("tests", "key"); err == nil {
		t.Error("more than MaxBytes are read")
	}
	put(t, f, "tests", "key", "anew")
	want(t, f, "tests", "key", "anew")
	// Another key's file under this one's name.
	put(t, f, "tests", "other", "other")
	if err := os.Rename(f.file("tests", "other"), path); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Load("tests", "key"); got != nil {
		t.Errorf("found %q under another key", got)
	}
}

// Many at once lose nothing of each other's.
func TestUpdateTogether(t *testing.T) {
	dir := t.TempDir()
	const many = 20
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			err := Open(dir).Update("tests", "key", func(old []byte) ([]byte, error) { return fmt.Appendf(old, "<%d>", i), nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := Open(dir).Load("tests", "key")
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if !strings.Contains(string(got), fmt.Sprintf("<%d>", i)) {
			t.Errorf("%d is lost: %s", i, got)
		}
	}
}

// Files of drivers of the past go, the newest of each kind stay.
func TestPrune(t *testing.T) {
	f := Open(t.TempDir())
	for i := range MaxFiles + 3 {
		key := fmt.Sprint(i)
		put(t, f, "tests", key, key)
		when := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(f.file("tests", key), when, when); err != nil {
			t.Fatal(err)
		}
	}
	put(t, f, "tunes", "0", "kept")
	put(t, f, "tests", "new", "new")
	want(t, f, "tests", "0", "")
	want(t, f, "tests", "new", "new")
	want(t, f, "tests", fmt.Sprint(MaxFiles+2), fmt.Sprint(MaxFiles+2))
	want(t, f, "tunes", "0", "kept")
	if n := len(f.Files()); n != MaxFiles+1 {
		t.Errorf("%d files are there, want %d", n, MaxFiles+1)
	}
}
