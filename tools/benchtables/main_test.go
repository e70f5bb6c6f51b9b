package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// The page says what the results say.
func TestPage(t *testing.T) {
	if err := run(testdata.Root(t), true); err != nil {
		t.Error(err)
	}
}

const whole = `{"format": 1, "command": ["leat", "bench", "8b.gguf", "-p", "512", "-r", "2", "--vram", "2GiB", "--json"], "started": "2026-11-30T01:02:03Z", "leat": {"commit": "0123456789"},
"device": {"name": "GPU", "driver_info": "1.2"}, "model": {"name": "8b.gguf", "quantization": "Q4_K_M"}, "settings": {"repetitions": 2}, "configurations": [{"vram_asked_bytes": 2147483648,
"plan": {"streamed_bytes_per_token": 3221225472}, "rows": [{"test": "pp512", "prompt_tokens": 512, "tokens_per_second": {"median": 1234.6, "min": 1200.1, "max": 1269.1}, "predicted_tokens_per_second": 1300.4,
"bottleneck": "link", "link": {"bytes_per_second": 5.07e10, "share_of_ceiling": 0.99}}]}]}`

func TestTables(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("gpu/1.json", whole)
	write("gpu/2.json", strings.NewReplacer("1234.6", "999", "2026-11-30", "2026-11-29").Replace(whole)) // older
	write("gpu/3.json", strings.ReplaceAll(whole, `"--json"`, `"--disable", "int8,fp16"`))
	write("gpu/speed-ups.json", `{"format": 1, "started": "2026-11-30", "device": {"name": "GPU", "driver_info": "1.2"},
		"speed_ups": [{"speed_up": "one", "model": "8b", "where": "4 GiB", "with": [110, 112], "without": [100, 102]}]}`)
	tables, err := tablesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"gpu": {
			"GPU, driver 1.2.",
			"| 8b | Q4_K_M | 2 GiB | 3 GiB | pp512 | 1 235 (1 200..1 269) | 1 300 (-5 %) | link 50.7 GB/s, 99 % | 1 |",
			"| | | 2 GiB | 3 GiB | pp512 `--disable int8,fp16` | 1 235 (1 200..1 269) | 1 300 (-5 %) | link 50.7 GB/s, 99 % | 2 |",
			"1. 2026-11-30 `8b.gguf -p 512 -r 2 --vram 2GiB`, commit 0123456",
		},
		"gpu speed-ups": {"| one | 8b | 4 GiB | 110, 112 | 100, 102 | +10 % |"},
	} {
		for _, line := range lines {
			if !strings.Contains(tables[name], line+"\n") {
				t.Errorf("%s lacks the line %q:\n%s", name, line, tables[name])
			}
		}
	}
	if strings.Contains(tables["gpu"], "999") {
		t.Errorf("an older row is shown:\n%s", tables["gpu"])
	}
	write("gpu/4.json", strings.ReplaceAll(whole, `"GPU"`, `"another"`))
	if _, err := tablesOf(dir); err == nil || !strings.Contains(err.Error(), "gpu/4.json") {
		t.Errorf("a folder with two devices: %v, want an error that names the file", err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"another format", `"format": 1`, `"format": 2`, "format is 2"},
		{"another shape", `"configurations"`, `"results"`, "it has command, device"},
		{"no date", "2026-11-30T01:02:03Z", "", "started"},
		{"no command", `"leat", "bench", "8b.gguf", "-p", "512", "-r", "2", "--vram", "2GiB", "--json"`, "", "command"},
		{"no driver", `"driver_info"`, `"x"`, "driver_info"},
		{"no model", `"8b.gguf", "quantization"`, `"", "quantization"`, "model"},
		{"no repetitions", `"repetitions"`, `"x"`, "repetitions"},
		{"no test", `"pp512"`, `""`, "configurations[0].rows[0]"},
		{"no speed", "1234.6", "0", "configurations[0].rows[0]"},
		{"a speed in words", "1234.6", `"fast"`, "want a number"},
		{"an unknown bottleneck", `"bottleneck": "link"`, `"bottleneck": "fan"`, `"fan"`},
		{"no rows", `"rows"`, `"x"`, "no configuration has a row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(whole, c.old, c.new, 1)
			if text == whole {
				t.Fatalf("%q is not in the report", c.old)
			}
			if _, _, err := decode([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestInsert(t *testing.T) {
	const page = "a\n<!-- benchtables: begin x -->\nold\n<!-- benchtables: end x -->\nb\n"
	got, err := insert(page, map[string]string{"x": "new\n"})
	if want := "a\n<!-- benchtables: begin x -->\n\nnew\n\n<!-- benchtables: end x -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for name, c := range map[string]struct {
		page   string
		tables map[string]string
	}{
		"markers without results": {page, nil},
		"results without markers": {page, map[string]string{"x": "", "y": ""}},
		"no end":                  {strings.Replace(page, "end x", "end y", 1), map[string]string{"x": ""}},
		"markers twice":           {page + page, map[string]string{"x": ""}},
	} {
		if _, err := insert(c.page, c.tables); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNumber(t *testing.T) {
	for in, want := range map[string]string{"14969.159": "14 969", "14043": "14 043", "1000": "1 000", "258.4": "258", "65.38": "65.4", "50.5": "50.5", "0.080": "0.080", "0.30": "0.30", "0.38123": "0.381", "16.04": "16.0", "407": "407", "7": "7"} {
		if got := number(in).String(); got != want {
			t.Errorf("%s is shown as %q, want %q", in, got, want)
		}
	}
}
