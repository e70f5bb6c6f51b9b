package main

import (
	"testing"
	"time"

	"leat/engine"
)

func TestBusy(t *testing.T) {
	from := engine.Stats{Link: time.Second, Compute: time.Second, Disk: time.Second, Stalled: time.Second, UploadedBytes: 5e9, DiskBytes: 1e9}
	to := engine.Stats{Link: 3 * time.Second, Compute: 1500 * time.Millisecond, Disk: time.Second, Stalled: 2400 * time.Millisecond, UploadedBytes: 105e9, DiskBytes: 1e9}
	for _, c := range []struct {
		name string
		to   engine.Stats
		want string
	}{
		{"streamed", to, "decode kept busy the link 100 % (50.00 GB/s), the device 25 %; the device waited for weights 70 %"},
		{"resident", engine.Stats{Link: time.Second, Compute: 3 * time.Second, Stalled: time.Second, UploadedBytes: 5e9, DiskBytes: 1e9}, "decode kept busy the device 100 %"},
		{"experts", engine.Stats{Link: time.Second, Compute: 3 * time.Second, Stalled: time.Second, UploadedBytes: 5e9, DiskBytes: 1e9, Experts: engine.ExpertStats{Hits: 30, HostMisses: 8, DiskMisses: 2}},
			"decode kept busy the device 100 %; 75 % of the experts asked for were in VRAM, 8 came from RAM, 2 from disk"},
	} {
		if got := busyOf(from, c.to, 2*time.Second).String(); got != c.want {
			t.Errorf("%s: found %q, wanted %q", c.name, got, c.want)
		}
	}
	if busyOf(from, to, 0) != nil {
		t.Error("shares of no time at all")
	}
}
