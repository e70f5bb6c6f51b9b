package cache

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// die closes what m holds as the end of a process does.
func die(t *testing.T, m *Marker, last string) {
	t.Helper()
	if _, err := m.file.WriteString(last); err != nil {
		t.Fatal(err)
	}
	if err := m.file.Close(); err != nil {
		t.Fatal(err)
	}
	markersMu.Lock()
	delete(markers, m)
	markersMu.Unlock()
}

func taken(t *testing.T, f *Folder, key string) (all []LeftMarker) {
	t.Helper()
	if err := f.TakeLeft("marks", key, func(l LeftMarker) error { all = append(all, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func marker(t *testing.T, f *Folder, what string) *Marker {
	t.Helper()
	m, err := f.NewMarker("marks", "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set("something before, which was longer"); err != nil {
		t.Fatal(err)
	}
	if err := m.Set(what); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarker(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "new"))
	if got := taken(t, f, "key"); got != nil {
		t.Errorf("a folder that is not there has %v", got)
	}
	live, done, closed, dead := marker(t, f, "live"), marker(t, f, "done"), marker(t, f, "closed"), marker(t, f, "dead")
	done.Clear()
	die(t, done, "")
	closed.Close()
	closed.Close()
	die(t, dead, "")
	if got := taken(t, f, "another key"); got != nil {
		t.Errorf("another key has %v", got)
	}
	if got, want := taken(t, f, "key"), []LeftMarker{{Work: "dead"}}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got := taken(t, f, "key"); got != nil {
		t.Errorf("found twice: %v", got)
	}
	if err := live.Set("still live"); err != nil {
		t.Error(err)
	}
	die(t, live, "")
	if got, want := taken(t, f, "key"), []LeftMarker{{Work: "still live"}}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if left, _ := os.ReadDir(f.Path()); len(left) != 0 {
		t.Errorf("%d files are left, want none", len(left))
	}
}

// Who can't note what a marker says leaves it for the next.
func TestMarkerStays(t *testing.T) {
	f := Open(t.TempDir())
	die(t, marker(t, f, "dead"), "")
	full := errors.New("disk full")
	if err := f.TakeLeft("marks", "key", func(LeftMarker) error { return full }); !errors.Is(err, full) {
		t.Errorf("the error is %v, want %v", err, full)
	}
	if got, want := taken(t, f, "key"), []LeftMarker{{Work: "dead"}}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// A process whose user ends it leaves nothing.
func TestClearMarkers(t *testing.T) {
	defer func() { cleared = false }()
	f := Open(t.TempDir())
	m := marker(t, f, "before")
	ClearMarkers()
	if err := m.Set("after"); err != nil {
		t.Error(err)
	}
	die(t, m, "")
	if got := taken(t, f, "key"); got != nil {
		t.Errorf("found %v, want nothing", got)
	}
}

func TestMarkerSignal(t *testing.T) {
	for name, c := range map[string]struct{ crash, want string }{
		"killed":         {"", ""},
		"crash":          {"SIGSEGV: segmentation violation\nPC=0x7f m=4 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n\ngoroutine 1", "SIGSEGV: segmentation violation"},
		"abort":          {"SIGABRT: abort\nPC=0x7f m=4 sigcode=1\nsignal arrived during cgo execution\n", "SIGABRT: abort"},
		"Windows":        {"Exception 0xc0000005 0x0 0x0 0x7ff\nPC=0x7f\nsignal arrived during external code execution\n", "Exception 0xc0000005 0x0 0x0 0x7ff"},
		"a user's quit":  {"SIGQUIT: quit\nPC=0x7f m=4 sigcode=1\nsignal arrived during cgo execution\n", ""},
		"a panic of Go":  {"panic: runtime error: index out of range\n\ngoroutine 1", ""},
		"our own access": {"SIGSEGV: segmentation violation\nPC=0x7f m=4\n\ngoroutine 1", ""},
	} {
		f := Open(t.TempDir())
		die(t, marker(t, f, "x"), c.crash)
		if got, want := taken(t, f, "key"), []LeftMarker{{"x", c.want}}; !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", name, got, want)
		}
	}
}

func TestMarkerNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := Open(file).NewMarker("marks", "key"); err == nil {
		m.Close()
		t.Error("a marker was made in a file")
	}
	var none *Folder
	if _, err := none.NewMarker("marks", "key"); err == nil {
		t.Error("a marker was made in no folder")
	}
	if got := taken(t, none, "key"); got != nil {
		t.Errorf("no folder has %v", got)
	}
}
