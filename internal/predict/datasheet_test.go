package predict_test

import (
	"flag"
	"math"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/predict/gpus"
	"leat/tools/synth/synthetic"
)

var fit = flag.Bool("fit", false, "print the constants of datasheet.go that suit the rows of TestReached best")

// reachedRows are what leat bench measured on an H100 80GB HBM3 (driver 580.159.04), synthetic models in Q4_K_M, on 2026-11-28:
// docs/benchmarks.md. Its last layer computed every row. The constants of datasheet.go are fitted to them.
var reachedRows = []struct {
	model  string
	vram   int64   // GiB; 75: all
	prompt int     // tokens; 0: generation
	depth  int     // tokens before those generated
	perSec float64 // measured
	fitted bool    // else it is predicted
}{
	{"8b", 75, 0, 64, 324, true},
	{"8b", 75, 0, 8192, 265, false},
	{"8b", 75, 512, 0, 14234, true},
	{"8b", 75, 2048, 0, 15979, true},
	{"70b", 75, 0, 16, 51.4, true},
	{"70b", 75, 512, 0, 1829, true},
	{"30b-a3b", 75, 0, 64, 265, true},
	{"30b-a3b", 75, 512, 0, 11452, true},
	{"8b", 2, 0, 32, 15.9, false},
	{"70b", 6, 0, 6, 1.37, false},
	{"70b", 24, 0, 6, 2.79, false},
	{"70b", 6, 512, 0, 686, false},
	{"70b", 6, 2048, 0, 1693, false},
}

// Estimates by data sheet give what was measured on the machine that they are fitted to, within so much. Prompts are the least
// exact: one rate stands for products that decode their weights and for such as find them decoded.
const (
	withinFitted    = 0.10
	withinPredicted = 0.08
)

func TestReached(t *testing.T) {
	g, err := gpus.Find("H100")
	if err != nil {
		t.Fatal(err)
	}
	type opened struct {
		h    *arch.Hyper
		file *pack.Model
	}
	models := map[string]opened{}
	var plans []*plan.Plan
	for _, r := range reachedRows {
		m, ok := models[r.model]
		if !ok {
			name := map[bool]string{true: "qwen3moe", false: "llama"}[r.model == "30b-a3b"]
			m.h, m.file = open(t, synthetic.Options{Arch: name, Preset: r.model, Type: "q4_k_m", Hollow: true})
			models[r.model] = m
		}
		plans = append(plans, mustMake(t, m.h, m.file, plan.Budget{
			DeviceBytes: r.vram << 30, HostBytes: 100 << 30, ContextLength: (r.depth + r.prompt + 1023) / 512 * 512, Matrices: true, FewRowKernels: true,
		}))
	}
	lanes := make([]predict.Lane, len(plans))
	found := func(i int) float64 {
		r := &reachedRows[i]
		p := predict.EveryRow(plans[i], predict.FromDataSheet(&g, 1.5e9), models[r.model].h, r.depth+1, max(1, r.prompt))
		if lanes[i] = p.DecodeBottleneck; r.prompt > 0 {
			lanes[i] = p.PrefillBottleneck
			return p.PrefillPerSec
		}
		return p.DecodePerSec
	}
	if *fit {
		fitReached(t, found)
	}
	for i, r := range reachedRows {
		got, within := found(i), withinPredicted
		if r.fitted {
			within = withinFitted
		}
		t.Logf("%-8s %2d GiB, prompt %4d, depth %4d: %8.4g tok/s, measured %8.4g (%+.0f %%)", r.model, r.vram, r.prompt, r.depth, got, r.perSec, 100*(r.perSec/got-1))
		near(t, r.model, got, r.perSec, within)
		if links := r.vram < 75 && r.prompt < 2048; links != (lanes[i] == predict.LaneLink) {
			t.Errorf("%s within %d GiB, prompt %d: the bottleneck is %s", r.model, r.vram, r.prompt, lanes[i])
		}
	}
}

// Prompts without matrix units: an 8B on an H200 with --disable coopmat (leat bench b.gguf -p 512,2048 -n 16 -r 2 -c 4096 --limit 20s --disable coopmat,
// 2026-11-30), which computes them in bytes as a device does that has none. By float32 it reached 1297 and 1171.
func TestReachedWithoutMatrices(t *testing.T) {
	g, err := gpus.Find("H200")
	if err != nil {
		t.Fatal(err)
	}
	g.BF16 = g.FP32
	if g.Matrices() {
		t.Fatal("it has matrix units")
	}
	h, file := open(t, synthetic.Options{Arch: "llama", Preset: "8b", Type: "q4_k_m", Hollow: true})
	p := mustMake(t, h, file, plan.Budget{DeviceBytes: 100 << 30, HostBytes: 100 << 30, ContextLength: 4096, FewRowKernels: true})
	for prompt, perSec := range map[int]float64{512: 1100, 2048: 1008} {
		r := predict.Plan(p, predict.FromDataSheet(&g, 2e9), h, 1, prompt)
		t.Logf("%d tokens: %.4g tok/s, measured %.4g", prompt, r.PrefillPerSec, perSec)
		near(t, "without matrix units", r.PrefillPerSec, perSec, withinPredicted)
	}
}

// fitReached goes downhill in all constants, by smaller and smaller steps.
func fitReached(t *testing.T, found func(row int) float64) {
	names, get, set := predict.Constants()
	off := func() (sum float64) {
		for i, r := range reachedRows {
			if d := math.Log(found(i) / r.perSec); r.fitted {
				sum += d * d
			}
		}
		return sum
	}
	best := off()
	for step := 0.2; step > 0.002; {
		before := best
		for _, name := range names {
			for _, by := range []float64{1 + step, 1 / (1 + step)} {
				old := get(name)
				if set(name, old*by); off() < best {
					best = off()
					break
				}
				set(name, old)
			}
		}
		if best >= before {
			step /= 2
		}
	}
	for _, name := range names {
		t.Logf("%s: %.4g", name, get(name))
	}
}
