package calibrate

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"leat/gguf"
	"leat/vk/vktest"
)

// What the upload brought is compared with what was sent.
func TestUpload(t *testing.T) {
	dev := vktest.Open(t)
	u, err := newUploadTest(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	if _, err := u.run(t.Context(), pieceBytes); err != nil {
		t.Fatal(err)
	}
	if same, err := u.check(t.Context()); err != nil || !same {
		t.Fatalf("check after a good upload: %v, %v", same, err)
	}
	u.last[pieceBytes-1] ^= 1
	if same, err := u.check(t.Context()); err != nil || same {
		t.Errorf("check finds %v, %v; want a difference", same, err)
	}
}

// Measured once: the second time everything is known, and only what is new is measured.
func TestDevice(t *testing.T) {
	dev := vktest.Open(t)
	path := filepath.Join(t.TempDir(), "deep", "calibration.json")
	log := slog.New(slog.DiscardHandler)
	ask := func(f *File, w Wanted) (*Device, int) {
		t.Helper()
		n := 0
		d, err := f.Device(t.Context(), dev, w, log, func() { n++ })
		if err != nil {
			t.Fatal(err)
		}
		return d, n
	}
	w := Wanted{Types: []gguf.Type{gguf.Q4_K}, KV: gguf.F16}
	d, n := ask(Open(path), w)
	if n != 1 {
		t.Errorf("an unknown device was measured %d times", n)
	}
	again, n := ask(Open(path), w)
	if n != 0 || again.Link != d.Link || again.Types["Q4_K"] != d.Types["Q4_K"] {
		t.Errorf("a known device was measured %d times: %+v, was %+v", n, again, d)
	}
	w.Types = append(w.Types, gguf.F32)
	more, n := ask(Open(path), w)
	if n != 1 || more.Link != d.Link || more.Types["Q4_K"] != d.Types["Q4_K"] || more.Types["F32"].ReadPerSec <= 0 {
		t.Errorf("with a new type: measured %d times, %+v, was %+v", n, more, d)
	}
	f := Open(path)
	f.Forget()
	if _, n := ask(f, w); n != 1 {
		t.Error("a forgotten device was not measured")
	}
	s := Speeds(d, &Disk{Rate: Rate{1, 2e9}}, gguf.F16)
	if s.DiskBytesPerSec != 2e9 || !(s.LinkBytesPerSec > 1e6) || !(s.TypeBytesPerSec[gguf.Q4_K] > 1e6) || !(s.TypeFlopsPerSec[gguf.Q4_K] > 1e6) ||
		!(s.AttnFlopsPerSec > 1e5) || s.DispatchTime <= 0 || s.HostOverheadPerStep <= 0 {
		t.Errorf("implausible: %+v", s)
	}
	t.Logf("%+v", s)
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	model, cache := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "calibration.json")
	write := func(bytes int64) {
		t.Helper()
		if err := os.WriteFile(model, make([]byte, bytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() (*Disk, int) {
		t.Helper()
		n := 0
		d, err := Open(cache).Disk(t.Context(), []string{model}, slog.New(slog.DiscardHandler), func() { n++ })
		if err != nil {
			t.Fatal(err)
		}
		return d, n
	}
	write(100)
	if d, n := ask(); d != nil || n != 0 {
		t.Errorf("a tiny file: %+v, measured %d times", d, n)
	}
	write(DiskBlock + 5)
	if d, n := ask(); n != 1 || d.Bytes != DiskBlock || d.BytesPerSec <= 0 {
		t.Errorf("a file: %+v, measured %d times", d, n)
	}
	if _, n := ask(); n != 0 {
		t.Error("a known disk was measured")
	}
	write(100) // on the same disk
	if d, n := ask(); d == nil || n != 0 {
		t.Errorf("a tiny file on a known disk: %+v, measured %d times", d, n)
	}
	write(3 * DiskBlock) // tells more
	if d, n := ask(); n != 1 || d.Bytes != 3*DiskBlock {
		t.Errorf("a larger file: %+v, measured %d times", d, n)
	}
	if err := os.WriteFile(cache, []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, n := ask(); n != 1 {
		t.Error("a broken cache was believed")
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	if d, err := ReadFolder(t.Context(), dir, 5*DiskBlock); err != nil || d.Bytes != 5*DiskBlock || d.BytesPerSec <= 0 {
		t.Errorf("a folder: %+v, %v", d, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadFolder(canceled, dir, 2*DiskBlock); err == nil {
		t.Error("canceled, it went on")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
}
