package bench

import (
	"strings"
	"testing"
	"time"

	"leat/internal/predict"
)

// A disk's rate is learned from enough bytes, and a lower one only where nothing else held the disk up.
func TestLearned(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name     string
		bytes    int64
		busy, of time.Duration
		want     float64 // bytes a second; 0: nothing is learned
	}{
		{"faster", 4 * gib, 2 * time.Second, 4 * time.Second, 2 * gib},
		{"faster, by little", 4 * gib, 3800 * time.Millisecond, 4 * time.Second, 0},
		{"too few bytes", gib, 500 * time.Millisecond, time.Second, 0},
		{"slower", 4 * gib, 8 * time.Second, 8 * time.Second, gib / 2},
		{"slower, by little", 4 * gib, 4200 * time.Millisecond, 4200 * time.Millisecond, 0},
		{"held up by others", 4 * gib, 8 * time.Second, 16 * time.Second, 0},
		{"never busy", 4 * gib, 0, time.Second, 0},
	} {
		rate, ok := learned(gib, c.bytes, c.busy, c.of)
		if ok != (c.want > 0) || ok && rate != c.want {
			t.Errorf("%s: found %g, %v; wanted %g", c.name, rate, ok, c.want)
		}
	}
}

// A row is predicted by the disk as it was until then, and what was measured before stays as it was.
func TestLearnDisk(t *testing.T) {
	measured := &predict.Speeds{Disk: predict.DiskSpeeds{BytesPerSec: 1e9}, Link: predict.LinkSpeeds{BytesPerSec: 20e9}}
	f := &forecast{speeds: measured}
	loaded := sample{at: time.Unix(100, 0)}
	loaded.stats.DiskBytes, loaded.stats.Disk = 50e9, 70*time.Second // the load, at another rate
	until := loaded
	until.at = until.at.Add(2 * time.Second)
	until.stats.DiskBytes, until.stats.Disk = until.stats.DiskBytes+3e9, until.stats.Disk+2*time.Second
	note := f.learnDisk(&loaded, &until)
	if s := f.speeds; s.Disk.BytesPerSec != 1.5e9 || s.Link.BytesPerSec != 20e9 || measured.Disk.BytesPerSec != 1e9 {
		t.Errorf("learned %+v, measured %+v", s, measured)
	}
	if !strings.Contains(note, "1.50 GB/s") {
		t.Errorf("note %q", note)
	}
	if note := f.learnDisk(&loaded, &until); note != "" {
		t.Errorf("learned again: %q", note)
	}
	f.speeds = nil
	if note := f.learnDisk(&loaded, &until); note != "" {
		t.Errorf("learned without a prediction: %q", note)
	}
}
