package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/engine/token"
	"leat/tools/synth/synthetic"
	"leat/vk/vktest"
)

func TestRun(t *testing.T) {
	vktest.Instance(t) // skips where there is no device
	dir := t.TempDir()
	path, csv := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "soak.csv")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama"}); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	// Tokens end it, as a time may be over before the model is loaded. In so short a time a slope says nothing: that something drifts is no failure here.
	code := run(t.Context(), []string{"-for", "1h", "-tokens", "30", "-every", "20ms", "-n", "3", "-p", "2", "-ctx", "64", "-vram", "3MiB", "-ram", "1KiB", "-csv", csv, path}, &out, &errw)
	if code != 0 && !strings.Contains(errw.String(), "it drifts") {
		t.Fatalf("exit status %d: %s", code, errw.String())
	}
	for _, want := range []string{"tok/s of a round", "pinned memory", "each with the same text"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	data, err := os.ReadFile(csv)
	if lines := strings.Count(string(data), "\n"); err != nil || lines < 2 || !strings.HasPrefix(string(data), header) {
		t.Errorf("%d lines of CSV, %v:\n%s", lines, err, data)
	}
}

// TestTokens: enough tokens end it, long before its time.
func TestTokens(t *testing.T) {
	vktest.Instance(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama"}); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	code := run(t.Context(), []string{"-for", "1h", "-every", "1h", "-tokens", "7", "-n", "3", "-p", "2", "-ctx", "64", path}, &out, &errw)
	if code != 0 || !strings.Contains(out.String(), "3 rounds, each with the same text; 9 tokens") {
		t.Errorf("exit status %d: %s\n%s", code, errw.String(), out.String())
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
		{"-n 2000 m.gguf", 2, "within -ctx"},
		{"-tokens -1 m.gguf", 2, "-tokens not below"},
		{"-h", 0, "Example:"},
		{"nowhere.gguf", 1, "nowhere.gguf"},
	} {
		var out, errw bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &out, &errw); code != c.code || !strings.Contains(errw.String(), c.want) {
			t.Errorf("%q: exit status %d, %q; wanted %d and %q", c.args, code, errw.String(), c.code, c.want)
		}
	}
}

// TestVerdict: what grows or slows is named, noise is not.
func TestVerdict(t *testing.T) {
	steady := func(i int) sample {
		return sample{seconds: float64(10 * i), rounds: int64(i), rss: 4<<30 + int64(i%3)<<20, heap: 10<<20 + int64(i%5)<<20, vram: 6 << 30, driverVRAM: 6<<30 + 5, pins: 1 << 30, handles: 20 + int64(i%2), threads: 30, goroutines: 25}
	}
	for _, c := range []struct {
		name   string
		change func(i int, s *sample)
		slower float64 // tok/s lost over the time, of 10
		want   string
	}{
		{"steady", func(int, *sample) {}, 0, ""},
		{"a warm-up", func(i int, s *sample) { s.rss -= int64(max(0, 40-i)) << 24 }, 0, ""},
		{"a leak of RAM", func(i int, s *sample) { s.rss += int64(i) << 18 }, 0, "resident set"},
		{"a leak of VRAM", func(i int, s *sample) { s.vram += int64(i) << 10 }, 0, "VRAM, our accounting"},
		{"a leak only the driver sees", func(i int, s *sample) { s.driverVRAM += int64(i) << 17 }, 0, "VRAM, the driver's"},
		{"handles", func(i int, s *sample) { s.handles += int64(i / 50) }, 0, "handles"},
		{"goroutines", func(i int, s *sample) { s.goroutines += int64(i / 50) }, 0, "goroutines"},
		{"slower", func(int, *sample) {}, 0.6, "decode"},
		{"faster", func(int, *sample) {}, -0.6, ""},
		{"more work for a token", func(_ int, s *sample) { s.cpu = 1 }, 0, "CPU of a token"},
	} {
		var samples []sample
		var r rounds
		for i := range 360 {
			s := steady(i)
			c.change(i, &s)
			samples = append(samples, s)
			r.speeds = append(r.speeds, point{s.seconds, 10 - c.slower*float64(i)/360 + 0.2*float64(i%2)})
			r.cpu = append(r.cpu, point{s.seconds, 0.05 * (1 + s.cpu*float64(i)/3600)})
		}
		var out bytes.Buffer
		err := verdict(&out, samples, &r)
		if (err != nil) != (c.want != "") || err != nil && err.Error() != "it drifts: "+c.want && !strings.HasPrefix(err.Error(), "it drifts: "+c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, out.String())
		}
	}
}

func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b []token.ID
		want int
	}{{nil, nil, -1}, {[]token.ID{1, 2}, []token.ID{1, 2}, -1}, {[]token.ID{1, 2}, []token.ID{1, 3}, 1}, {[]token.ID{1, 2}, []token.ID{1}, 1}} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %d, wanted %d", c.a, c.b, got, c.want)
		}
	}
}
