package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/synth/synthetic"
	"leat/vk/vktest"
)

func TestRun(t *testing.T) {
	vktest.Instance(t) // skips where there is no device
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama"}); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	if code := run(t.Context(), []string{"-n", "2", "-p", "3", "-ctx", "64", "-vram", "3MiB,0", "-ram", "1KiB", "-spread", "even,edges", "-slots", "0,5", "-piece", "64KiB", path}, &out, &errw); code != 0 {
		t.Fatalf("exit status %d: %s", code, errw.String())
	}
	if n := strings.Count(out.String(), "tok/s"); n != 8 || strings.Count(out.String(), "edges, 5 slots of 64 KiB") != 2 {
		t.Errorf("%d lines of speed, wanted 8, two of them of edges with 5 slots:\n%s", n, out.String())
	}
}

// The CPU's writes are measured where the device takes them, beside those of the queue.
func TestReBAR(t *testing.T) {
	defer func(d time.Duration) { sweepTime = d }(sweepTime)
	sweepTime = time.Millisecond
	inst := vktest.Instance(t)
	phys, err := inst.Pick("")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sweepReBAR(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "GB/s"); (n == 13) != (phys.Features.UMA || phys.Features.ReBAR) {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// The disk gives each point twice.
func TestDiskSweep(t *testing.T) {
	defer func(d time.Duration) { sweepTime = d }(sweepTime)
	sweepTime = time.Millisecond
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sweepDisk(t.Context(), path, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "first") != 12 || strings.Count(out.String(), "again") != 13 {
		t.Errorf("found:\n%s", out.String())
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "want one MODEL"},
		{"-vram much m.gguf", 2, "2GiB"},
		{"-spread odd m.gguf", 2, "prefix"},
		{"-slots few m.gguf", 2, "24"},
		{"-n 0 m.gguf", 2, "at least 1"},
		{"-h", 0, "Example:"},
		{"nowhere.gguf", 1, "nowhere.gguf"},
	} {
		var out, errw bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &out, &errw); code != c.code || !strings.Contains(errw.String(), c.want) {
			t.Errorf("%q: exit status %d, %q; wanted %d and %q", c.args, code, errw.String(), c.code, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	var s sizes
	if err := s.Set("1.5GiB,2MiB,3KiB,7"); err != nil || len(s) != 4 || s[0] != 3<<29 || s[1] != 2<<20 || s[2] != 3<<10 || s[3] != 7 {
		t.Errorf("%v, %v", s, err)
	}
}
