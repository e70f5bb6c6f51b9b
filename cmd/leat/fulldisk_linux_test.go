package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"leat/cmd/leat/demo"
	"leat/internal/calibrate"
)

// TestFullDisk: whatever the program writes beside packs, a full disk is an error with a
// hint, or a warning where it matters little; what was there stays, and no half file does.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mounting a small tmpfs: %v (root alone may)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	at := func(name string) string { return filepath.Join(disk, name) }
	past, err := openHistory(at("history"))
	if err != nil {
		t.Fatal(err)
	}
	if err := past.add("before"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"conversation", "logits", "calibration.json"} {
		if err := os.WriteFile(at(name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 40<<10)
	if err := os.WriteFile(at("ballast"), []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	measured := filepath.Join(t.TempDir(), "measured")
	if err := os.WriteFile(measured, make([]byte, calibrate.DiskBlock), 0o644); err != nil {
		t.Fatal(err)
	}
	before := names(t, disk)

	for _, c := range []struct {
		name  string
		write func() error
	}{
		{"history", func() error { return past.add(long) }},
		{"conversation", func() error {
			c := conversation{Messages: []message{{Role: roleUser, Content: long}}}
			s := defaultSettings()
			return c.saved("m", &s).write(at("conversation"))
		}},
		{"logits", func() error {
			return (&results{paths: []string{at("logits")}}).fill(at("logits"), func(w io.Writer) error { _, err := io.WriteString(w, long+long); return err })
		}},
		{"demo model", func() error { _, err := demo.Path(disk); return err }},
		{"disk measurement", func() error { _, err := calibrate.ReadFolder(t.Context(), disk, 1<<20); return err }},
	} {
		if err := c.write(); !errors.Is(err, unix.ENOSPC) || hintFor(err) == "" {
			t.Errorf("%s: found %v with the hint %q, wanted ENOSPC with one", c.name, err, hintFor(err))
		}
	}
	// A calibration that can't be kept costs the next run some seconds.
	if err := os.WriteFile(at("rest"), []byte(long), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	before = append(before, "rest", ".lock")
	var log bytes.Buffer
	f := calibrate.Open(at("calibration.json"))
	d, err := f.Disk(t.Context(), []string{measured}, slog.New(slog.NewTextHandler(&log, nil)), func() error { return nil })
	if err != nil || d == nil || !strings.Contains(log.String(), "no space left") {
		t.Errorf("calibration: %v, %v, %q", d, err, log.String())
	}

	if after := names(t, disk); !equalSets(before, after) {
		t.Errorf("files %v, wanted %v", after, before)
	}
	for _, name := range []string{"conversation", "logits", "calibration.json"} {
		if data, err := os.ReadFile(at(name)); err != nil || string(data) != "old" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	// An entry that was torn harms neither those before nor those after it.
	for _, name := range []string{"ballast", "rest"} {
		if err := os.Remove(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := openHistory(at("history"))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.add("after"); err != nil {
		t.Fatal(err)
	}
	if h, err := openHistory(at("history")); err != nil || strings.Join(h.entries, " ") != "before after" {
		t.Errorf("history: %.80q, %v", h.entries, err)
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func equalSets(a, b []string) bool {
	set := map[string]bool{}
	for _, x := range a {
		set[x] = true
	}
	for _, x := range b {
		if !set[x] {
			return false
		}
	}
	return len(a) == len(b)
}
