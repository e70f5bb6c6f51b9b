package main

import (
	"strings"
	"testing"
	"time"

	"leat/engine"
	"leat/internal/bench"
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
		{"experts", engine.Stats{Link: time.Second, Compute: 3 * time.Second, Stalled: time.Second, UploadedBytes: 5e9, DiskBytes: 1e9, Experts: engine.ExpertStats{Hits: 30, HostMisses: 8, DiskMisses: 2, Evictions: 7}, Steps: 2, Rows: 2},
			"decode kept busy the device 100 %; 75 % of the experts asked for were in VRAM, 8 came from RAM, 2 from disk; 7 left VRAM"},
	} {
		if got := busyOf(from, c.to, 2*time.Second).String(); got != c.want {
			t.Errorf("%s: found %q, wanted %q", c.name, got, c.want)
		}
	}
	if busyOf(from, to, 0) != nil {
		t.Error("shares of no time at all")
	}
}

func TestExpertTexts(t *testing.T) {
	x := &bench.Experts{Steps: 4, Tokens: 512, HitRate: 0.75, Hits: 30, HostMisses: 8, DiskMisses: 2, Evictions: 7, Distinct: 30.25,
		VRAMPerToken: 3 << 20, RAMPerToken: 1 << 20, DiskPerToken: 512 << 10, Stalled: 0.05, StalledMS: 12.5}
	for _, c := range []struct{ got, want string }{
		{expertsFound(x), "75 % of the experts asked for were in VRAM, 8 came from RAM, 2 from disk; 7 left VRAM"},
		{expertsTook(x), "a token used 3.0 MiB of experts in VRAM, 1.0 MiB from RAM, 512.0 KiB from disk; a step waited 12.5 ms for experts, all of them 50 ms"},
		{expertsDistinct(x), "a layer needed 30.2 different experts in a step of 128 tokens"},
	} {
		if c.got != c.want {
			t.Errorf("found %q, wanted %q", c.got, c.want)
		}
	}
}

func TestExpertRows(t *testing.T) {
	x := &bench.Experts{Steps: 1, Tokens: 1, Hits: 1, HitRate: 1}
	for _, c := range []struct {
		name string
		s    runStats
		want []string // how rows begin
	}{
		{"all in VRAM", runStats{Busy: &busyStats{}}, nil},
		{"an answer of one token", runStats{Prefill: x}, []string{"experts its prompt: a layer needed 0.0"}},
		{"both", runStats{Busy: &busyStats{Experts: x}, Prefill: x}, []string{"experts last answer: 100 %", " a token used 0 B", "experts its prompt: "}},
	} {
		rows := expertRows(&c.s)
		if len(rows) != len(c.want) {
			t.Errorf("%s: %q", c.name, rows)
			continue
		}
		for i, want := range c.want {
			if got := rows[i][0] + " " + rows[i][1]; !strings.HasPrefix(got, want) {
				t.Errorf("%s: found %q, wanted %q", c.name, got, want)
			}
		}
	}
}
