package main

import (
	"regexp"
	"strings"
	"testing"

	"leat/internal/bench"
	"leat/internal/predict"
)

// What is small is not printed as nothing, and nothing is not negative.
func TestFigures(t *testing.T) {
	type figures map[float64]string
	for name, c := range map[string]struct {
		print func(float64) string
		want  figures
	}{
		"formatSpeed":  {formatSpeed, figures{0: "0", 1.2e-5: "0.0000120", 0.0004: "0.000400", 0.025: "0.0250", 0.9996: "1.00", 1.699: "1.70", 9.999: "10.0", 14.06: "14.1", 99.96: "100", 1234.5: "1234"}},
		"speedText":    {speedText, figures{0: "0 tok/s", 1.0 / 7200 / 2: "4.0 h a token", 1.0 / 600: "10 min a token", 0.025: "40 s a token", 0.4: "2.5 s a token", 0.999: "0.999 tok/s", 1.07: "1.07 tok/s", 412: "412 tok/s"}},
		"formatChange": {formatChange, figures{0: "0 %", -0.004: "0 %", 0.004: "0 %", -0.006: "-1 %", 0.03: "+3 %", -0.12: "-12 %", 1: "+100 %"}},
		"percent":      {percent, figures{0: "0%", 0.001: "<1%", 0.005: "1%", 0.996: "100%", 0.98: "98%"}},
		"seconds":      {seconds, figures{0: "0 ms", 3e-7: "0.30 us", 12e-6: "12 us", 0.0012: "1.2 ms", 0.00999: "10 ms", 0.071: "71 ms", 0.9999: "1.0 s", 1.14: "1.1 s", 9.99: "10 s", 40: "40 s", 600: "10 min", 3 * 3600: "3.0 h"}},
		"formatRate":   {formatRate, figures{0: "0 MB/s", 400: "0.00040 MB/s", 4e5: "0.40 MB/s", 1.5e6: "1.5 MB/s", 10e6: "10 MB/s", 999.6e6: "1.00 GB/s", 50.7e9: "50.70 GB/s"}},
		"overheadText": {overheadText, figures{0: "0%", -0.001: "0%", 0.004: "0%", 0.93: "+93%", 6.41: "+641%", 14: ">10x"}},
	} {
		for x, want := range c.want {
			if got := c.print(x); got != want {
				t.Errorf("%s(%g) = %q, wanted %q", name, x, got, want)
			}
		}
	}
}

// lies are figures that say nothing, or nothing less than nothing.
var lies = regexp.MustCompile(`-0 ?%|\b0\.0+ tok/s|\b0\.0+ ms`)

// No report has any of them, however slow the machine or small the difference.
func TestFiguresPrinted(t *testing.T) {
	slow := predict.Prediction{DecodePerSec: 0.0021, BoundPerSec: 0.0021, DecodeBottleneck: predict.LaneDisk}
	s := runStats{DecodePerSec: 0.00209999, PromptPerSec: 0.004, TTFTSeconds: 3e-6, Tokens: 3, Predicted: &slow}
	r := &benchReport{Configurations: []benchConfig{{Result: bench.Result{
		Rows: []bench.Row{{Test: "tg2", PerSec: bench.Spread{Median: 0.0021, Min: 0.002, Max: 0.0022}, Predicted: 0.0021, Difference: -0.001, Disk: bench.Lane{Bytes: 1, BytesPerSec: 1e5, Share: 0.001}}},
	}}}}
	var text strings.Builder
	r.print(&text)
	r.printMarkdown(&text)
	texts := map[string]string{"run": s.prediction() + s.speeds(), "bench": text.String()}
	for _, args := range []string{"--gpu 4090 --vram 5MiB --ram 3MiB --disk-gbps 0.00001 --ctx 512", "--gpu 8060S", "--gpu 3060 --vram 6MiB --link-gbps 0.0001 --disk-gbps 0.0001", "--gpu 4090 --train --disk-gbps 0.0001"} {
		stdout, stderr, code := leat(t, append([]string{"plan", "demo"}, strings.Fields(args)...)...)
		if code != exitOK {
			t.Fatalf("plan demo %s: exit %d: %s", args, code, stderr)
		}
		texts["plan "+args] = stdout
	}
	for name, text := range texts {
		if found := lies.FindString(text); found != "" || len(text) < 40 {
			t.Errorf("%s prints %q:\n%s", name, found, text)
		}
	}
}

// A plan begins with one sentence: does it fit, how fast is it, what would help most. What is assumed is marked.
func TestPlanSummary(t *testing.T) {
	for args, want := range map[string]string{
		"--gpu 4090":                       `^It fits: all 4\.4 MiB stay in VRAM, about [0-9]+ tok/s \(an estimate\); only a faster GPU would help\.\n\n`,
		"--gpu 8060S":                      `^It fits: all .* stay in memory, about `,
		"--gpu 4090 --vram 5MiB --ctx 512": `^It runs, but not all of it fits: of 4\.4 MiB .* come from RAM for each token, about `,
		"--gpu 4090 --vram 5MiB --ctx 512 --link-gbps 0.01":               `^It runs, .*; twice the VRAM \(10\.0 MiB\) would help most: .* tok/s\.\n`,
		"--gpu 4090 --vram 5MiB --ram 3MiB --disk-gbps 0.00001 --ctx 512": `^It runs, .* come from RAM and disk for each token, about [0-9]+ min a token`,
	} {
		stdout, stderr, code := leat(t, append([]string{"plan", "demo"}, strings.Fields(args)...)...)
		if code != exitOK || !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("plan demo %s: exit %d, %s, wanted %s:\n%s", args, code, stderr, want, stdout)
		}
		if assumed := strings.Contains(stdout, "link 25.52 GB/s (assumed)"); strings.Contains(args, "4090") && assumed == strings.Contains(args, "--link-gbps") {
			t.Errorf("plan demo %s: the link is marked: %v\n%s", args, assumed, stdout)
		}
	}
	stdout, _, _ := leat(t, "plan", "demo", "--gpu", "4090", "--disk-gbps", "3", "--json")
	if !strings.Contains(stdout, `"link_bytes_per_second",`) || strings.Contains(stdout, `    "disk_bytes_per_second",`) || !strings.Contains(stdout, `"summary": "It fits`) {
		t.Errorf("assumed figures are not marked: %s", stdout)
	}
}
