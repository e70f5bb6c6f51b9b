package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that was written to after it was opened gives no more bytes, whatever way it is read, and also once its time is set back;
// the error names the part that it was.
func TestChanged(t *testing.T) {
	for _, m := range modes {
		for name, change := range map[string]func(t *testing.T, path string, was fs.FileInfo){
			"overwritten": func(t *testing.T, path string, was fs.FileInfo) {
				overwrite(t, path)
				if err := os.Chtimes(path, time.Time{}, was.ModTime().Add(time.Second)); err != nil { // the clock of a file system may be coarse
					t.Fatal(err)
				}
			},
			"longer": func(t *testing.T, path string, was fs.FileInfo) {
				if err := os.Truncate(path, was.Size()+1); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(m.name+", "+name, func(t *testing.T) {
				a, _ := write(t, 100_000, 1)
				b, _ := write(t, 100_000, 2)
				f, err := OpenStriped([]string{a, b}, Align)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				for _, part := range f.parts {
					m.set(part)
				}
				read := func(off int64) error { return f.Read(t.Context(), m.dst(Room(off, 100)), off, 100) }
				if err := errors.Join(read(0), read(Align), f.Unchanged()); err != nil {
					t.Fatal(err)
				}
				was, err := os.Stat(b)
				if err != nil {
					t.Fatal(err)
				}
				change(t, b, was)
				if err := read(0); err != nil {
					t.Errorf("the other part: %v", err)
				}
				for range 2 {
					var e *ChangedError
					if err := read(Align); !errors.As(err, &e) || e.Path != b || e.Hint() == "" {
						t.Errorf("found error %v, wanted a ChangedError of %s", err, b)
					}
					if err := f.Unchanged(); !errors.As(err, &e) {
						t.Errorf("Unchanged: found error %v, wanted a ChangedError", err)
					}
					if err := os.Chtimes(b, time.Time{}, was.ModTime()); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// overwrite writes in place.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("other bytes"), 5000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file is held against an earlier look at its path.
func TestIs(t *testing.T) {
	path, _ := write(t, 10_000, 1)
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if err := f.Is(was); err != nil {
		t.Errorf("the same file: %v", err)
	}
	if err := f.Is(was, was); err == nil {
		t.Error("one part was compared with two looks")
	}
	other, content := write(t, 10_000, 1)
	if err := os.Chtimes(other, time.Time{}, was.ModTime()); err != nil {
		t.Fatal(err)
	}
	var e *ChangedError
	if err := open(t, other).Is(was); !errors.As(err, &e) || !e.Replaced {
		t.Errorf("another file of the same size and time: %v", err)
	}
	if err := os.WriteFile(path, content[:9000], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Is(was); !errors.As(err, &e) || e.Replaced || e.FoundBytes != 9000 || filepath.Base(e.Path) != filepath.Base(path) {
		t.Errorf("a file that was written anew: %v", err)
	}
}
