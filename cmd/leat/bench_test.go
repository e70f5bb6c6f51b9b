package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/bench"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/tools/testdata"
)

// bigReport is of a machine with everything: a GPU with sensors, streaming from disk.
func bigReport() *benchReport {
	half := 0.5
	return &benchReport{
		Format: benchFormat, Leat: versionInfo{"1.0", "abc", "go1", "linux", "amd64"}, Command: []string{"leat", "bench", "my model.gguf", "-n", "128"},
		Started: time.Unix(0, 0).UTC(), Device: deviceReport{Name: "A GPU", Driver: "driver", DriverInfo: "1.2"},
		Model:    benchModel{Name: "m|odel.gguf", Architecture: "llama", Quantization: "Q4_K_M", Bytes: 40 << 30, Parameters: 70_600_000_000, Layers: 80},
		Settings: benchSettings{Repetitions: 3}, Ceilings: bench.Ceilings{Disk: 1.7e9, Link: 51e9, VRAM: 1300e9}, Notes: []string{"a note on all"},
		Configurations: []benchConfig{{
			VRAM: 6 << 30, Emulated: &emulation{Tier: "RTX 2060", VRAM: 6 << 30, RAM: 16 << 30, Link: 12.6e9},
			Result: bench.Result{
				Plan:   bench.Placement{Context: 1024, ResidentUnits: 10, HostUnits: 20, DiskUnits: 3, VRAMBudget: 6 << 30, StreamedBytes: 34 << 30, DiskBytes: 1 << 30},
				Load:   bench.Load{Seconds: 26, ColdTTFTSeconds: 27.7, ColdPrompt: 512, WarmTTFTSeconds: 1.5, WarmPrompt: 512},
				Memory: bench.Memory{VRAMPeak: 5 << 30, Pinned: 12 << 30, RSS: 13 << 30}, Notes: []string{"a note on one"},
				Rows: []bench.Row{{
					Test: "tg128", Generate: 128, PerSec: bench.NewSpread([]float64{1.36, 1.37, 1.39}), Seconds: []float64{94, 93, 92}, Predicted: 1.34, Difference: 0.0224,
					Disk: bench.Lane{Bytes: 1, BytesPerSec: 1.6e9, Share: 0.94, Busy: 0.95}, Link: bench.Lane{Bytes: 1, BytesPerSec: 50.5e9, Share: 0.99, Busy: 0.99},
					VRAM: bench.Lane{Bytes: 1, BytesPerSec: 1000e9, Share: 0.77, Busy: 0.2}, Bottleneck: predict.LaneLink, Overlap: &half,
					CPUOfCore: 0.126, TempC: 61, PowerW: 210, JoulePer: 153, RestShare: 0.03,
				}, {Test: "tg128@d8192", Generate: 128, Depth: 8192, PerSec: bench.NewSpread([]float64{100.4})}},
			},
		}, {VRAM: 1 << 30, Error: "too small", Result: bench.Result{Rows: []bench.Row{}}}},
	}
}

func TestBenchTable(t *testing.T) {
	var out bytes.Buffer
	bigReport().print(&out)
	for _, want := range []string{
		"model    m|odel.gguf: llama Q4_K_M, 40.0 GiB, 70.6 B parameters, 80 layers\n",
		"ceilings disk 1.70 GB/s, link 51.00 GB/s, weights in VRAM 1300.00 GB/s\n",
		"as on    RTX 2060, emulated: VRAM and RAM, link 12.60 GB/s\n",
		"VRAM     5.0 GiB of 6.0 GiB: 10 of 33 units stay",
		"streamed 34.0 GiB a token, 1.0 GiB of it from disk\n",
		"load     26 s; first token after 28 s (512 tokens, cold), 1.5 s (512 tokens, warm)\n",
		"\ntest                  tok/s    min..max   predicted             disk              link          VRAM reads  bottleneck  overlap  CPU  °C  J/token  rests\n",
		"\ntg128 emulated         1.37  1.36..1.39  1.34 (+2%)  1.60 GB/s (94%)  50.50 GB/s (99%)  1000.00 GB/s (77%)    link 99%      50%  13%  61      153     3%\n",
		"\ntg128@d8192 emulated    100    100..100", "note: a note on one\n", "note: a note on all\n", "VRAM     1GiB: too small\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestBenchMarkdown(t *testing.T) {
	var out bytes.Buffer
	bigReport().printMarkdown(&out)
	lines := strings.Split(out.String(), "\n")
	pipes := func(line string) int { return strings.Count(line, "|") - strings.Count(line, `\|`) }
	for i := range 4 {
		if pipes(lines[i]) != pipes(lines[0]) {
			t.Errorf("line %d has other columns: %s", i, lines[i])
		}
	}
	for _, want := range []string{
		`| m\|odel.gguf Q4_K_M | 40.0 GiB | RTX 2060 (emulated on A GPU) | 6.0 GiB | 34.0 GiB | tg128 emulated | 1.37 |`,
		"leat 1.0 (abc) go1 linux/amd64; driver 1.2; medians of 3 runs, of fewer where a note says so; `leat bench 'my model.gguf' -n 128`\n",
		"\n- a note on all\n", "\n- RTX 2060: a note on one\n", "\n- 1GiB: too small\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, out.String())
		}
	}
}

func TestBenchCSV(t *testing.T) {
	var out bytes.Buffer
	if err := bigReport().printCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll() // which refuses lines of different lengths
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d lines, %v", len(rows), err)
	}
	cell := map[string]string{}
	for i, name := range rows[0] {
		cell[name] = rows[1][i]
	}
	for name, want := range map[string]string{
		"emulated": "RTX 2060", "test": "tg128", "tokens_per_second": "1.37", "tokens_per_second_max": "1.39", "overlap": "0.5", "bottleneck": "link",
		"vram_budget_bytes": "6442450944", "joules_per_token": "153", "started": "1970-01-01T00:00:00Z", "repetitions": "3", "link_bytes_per_second": "5.05e+10",
	} {
		if cell[name] != want {
			t.Errorf("%s: found %q, wanted %q", name, cell[name], want)
		}
	}
}

// The names that docs/bench.md promises. Who renames one breaks scripts: benchFormat counts up.
func TestBenchJSON(t *testing.T) {
	text, err := json.Marshal(bigReport())
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"format", "leat.version", "leat.commit", "command", "started", "machine.os", "machine.cpu.name", "machine.cpu.ram_bytes", "device.name", "device.driver",
		"model.name", "model.architecture", "model.quantization", "model.bytes", "model.parameters", "settings.repetitions", "settings.limit_seconds",
		"ceilings.disk_bytes_per_second", "ceilings.link_bytes_per_second", "ceilings.vram_bytes_per_second", "notes", "configurations.0.vram_asked_bytes",
		"configurations.0.emulated.tier", "configurations.0.emulated.link_bytes_per_second", "configurations.0.plan.streamed_bytes_per_token",
		"configurations.0.plan.vram_budget_bytes", "configurations.0.load.cold_ttft_seconds", "configurations.0.load.warm_ttft_seconds", "configurations.0.memory.vram_peak_bytes",
		"configurations.0.memory.pinned_ram_bytes", "configurations.0.memory.rss_peak_bytes", "configurations.0.notes", "configurations.1.error",
		"configurations.0.rows.0.test", "configurations.0.rows.0.prompt_tokens", "configurations.0.rows.0.generated_tokens", "configurations.0.rows.0.depth",
		"configurations.0.rows.0.tokens_per_second.median", "configurations.0.rows.0.tokens_per_second.mad", "configurations.0.rows.0.tokens_per_second.values.2",
		"configurations.0.rows.0.seconds", "configurations.0.rows.0.predicted_tokens_per_second", "configurations.0.rows.0.difference",
		"configurations.0.rows.0.disk.bytes_per_second", "configurations.0.rows.0.link.share_of_ceiling", "configurations.0.rows.0.vram.busy_share",
		"configurations.0.rows.0.bottleneck", "configurations.0.rows.0.overlap", "configurations.0.rows.0.stalled_share", "configurations.0.rows.0.cpu_of_one_core",
		"configurations.0.rows.0.cpu_of_all_cores", "configurations.0.rows.0.temp_c", "configurations.0.rows.0.joules_per_token", "configurations.0.rows.0.rest_share",
	} {
		if !reaches(r, strings.Split(path, ".")) {
			t.Errorf("%s is missing", path)
		}
	}
}

func reaches(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[path[0]]
		return ok && reaches(next, path[1:])
	case []any:
		i := int(path[0][0] - '0')
		return i < len(v) && reaches(v[i], path[1:])
	}
	return false
}

func TestBenchTests(t *testing.T) {
	f := &benchFlags{prompts: []int{512, 0}, tokens: []int{128, 16}, depths: []int{8192, 0, 0}}
	var names []string
	for _, test := range f.tests() {
		names = append(names, test.Name())
	}
	if got := strings.Join(names, " "); got != "pp512 tg128 tg16 pp512@d8192 tg128@d8192 tg16@d8192" {
		t.Errorf("found %s", got)
	}
}

// A tier that has more than this device is left out, unless the model would fill neither.
func TestBenchTiers(t *testing.T) {
	m, err := pack.Open(filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		vram  int64
		want  string
		notes int
	}{
		{"a large device", 20 << 30, "GTX 1660, RTX 3060", 0},
		{"room for the model, not for the tiers", 1 << 30, "GTX 1660, RTX 3060", 0},
		{"no room for the model", 3 << 20, "", 2},
	} {
		f := &benchFlags{tiers: []string{"gtx1660", "rtx3060"}, tokens: []int{8}, depths: []int{0}, emulate: true}
		r := &bencher{f: f, a: &app{}, model: m, hyper: h, budget: plan.Budget{DeviceBytes: c.vram, HostBytes: 64 << 30}}
		r.report.Ceilings = bench.Ceilings{Disk: 1e9, Link: 20e9, VRAM: 3000e9}
		list, err := r.tierConfigurations()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range list {
			names = append(names, c.Emulated.Tier)
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%s: found %q, wanted %q", c.name, got, c.want)
		}
		fit := 0
		for _, n := range r.report.Notes {
			if strings.Contains(n, "does not fit here") {
				fit++
			}
		}
		if fit != c.notes {
			t.Errorf("%s: notes %q", c.name, r.report.Notes)
		}
		if len(list) < 2 {
			continue
		}
		// PCIe 3 is slower than this link, PCIe 4 is not; both read VRAM slower; no disk is.
		a, b := list[0].Emulated, list[1].Emulated
		if a.Link == 0 || b.Link != 0 || a.Mem == 0 || b.Mem == 0 || a.Disk != 0 {
			t.Errorf("%s: rates %+v, %+v", c.name, a, b)
		}
		o := bench.Options{Ceilings: r.report.Ceilings, Speeds: &predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 20e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 3000e9}}}
		list[0].emulated(&o)
		if o.Engine.Tuning.Limits.LinkBytesPerSec != a.Link || o.Ceilings.Link != a.Link || o.Speeds.Link.BytesPerSec != a.Link || o.Ceilings.Disk != 1e9 || o.Speeds.Kernels.BytesPerSec != a.Mem {
			t.Errorf("%s: %+v, %+v", c.name, o.Ceilings, o.Speeds)
		}
	}
}

func TestSizesFlag(t *testing.T) {
	var v sizesFlag
	if err := v.Set("1.5GiB, 2MiB,7"); err != nil || len(v) != 3 || v[0] != 3<<29 || v[1] != 2<<20 || v[2] != 7 {
		t.Errorf("%v, %v", v, err)
	}
	if err := v.Set("1GiB"); err != nil || len(v) != 1 {
		t.Errorf("given again it begins anew: %v, %v", v, err)
	}
	if err := v.Set("1GiB,"); err == nil {
		t.Error("an empty size: no error")
	}
}

// On a terminal one line is written over; elsewhere only what is over stays, and a sign of life.
func TestStatus(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	s := &status{w: &out, terminal: true, now: func() time.Time { return now }}
	s.say("a")
	s.say("b")
	s.done("c")
	s.close()
	s.close()
	s.say("late")
	if got := out.String(); got != "\r\x1b[Kleat: a\r\x1b[Kleat: b\r\x1b[Kleat: c\n" {
		t.Errorf("terminal: %q", got)
	}
	out.Reset()
	s = &status{w: &out, now: func() time.Time { return now }, shown: now}
	s.say("a")
	s.done("b")
	now = now.Add(lineEvery)
	s.say("c")
	s.close()
	if got := out.String(); got != "leat: b\nleat: c\n" {
		t.Errorf("a file: %q", got)
	}
}
