package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/predict"
	"leat/tools/synth/synthetic"
)

// The JSON of a plan is consistent with itself, for every GPU of a few kinds.
func TestPlanJSON(t *testing.T) {
	for _, gpu := range []string{"gtx1660", "rtx 3060", "rtx 5090", "rx 9070", "8060s", "b580", "h100", "m4 max"} {
		t.Run(gpu, func(t *testing.T) {
			ram := "3MiB" // where it is one memory with --vram this is all of it
			stdout, stderr, code := leat(t, "plan", "demo", "--gpu", gpu, "--vram", "5MiB", "--ram", ram, "--ctx", "512", "--tokens", "1", "--json")
			if code != exitOK || stderr != "" {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			var r planReport
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			p := &r.Plan
			if p.VRAMBytes > p.VRAMBudget || p.VRAMBytes != p.WeightBytes+p.RingBytes+p.KVBytes+p.ScratchBytes || p.Context != 512 {
				t.Errorf("VRAM doesn't add up: %+v", p)
			}
			var units int
			var bytes int64
			for _, tier := range p.Tiers {
				units, bytes = units+tier.Units, bytes+tier.Bytes
			}
			if units != r.Model.Units || bytes != r.Model.Bytes || p.Tiers[1].Bytes+p.Tiers[2].Bytes != p.StreamedBytes || p.Tiers[2].Bytes != p.DiskBytes {
				t.Errorf("tiers don't add up: %+v of %+v", p, r.Model)
			}
			last := 0.0
			for _, row := range r.Budgets {
				if row.DecodePerSec < 0.97*last || row.VRAMBytes%(1<<20) != 0 {
					t.Errorf("more VRAM is slower: %+v", r.Budgets)
				}
				last = row.DecodePerSec
			}
			if r.SecondDrive == nil || r.SecondDrive.DecodePerSec < r.Prediction.DecodePerSec || r.Target == nil || r.Target.VRAMBytes == 0 {
				t.Errorf("second drive %+v, target %+v, prediction %+v", r.SecondDrive, r.Target, r.Prediction)
			}
		})
	}
}

// One memory is counted once: on a GPU that shares it with the CPU, --ram is all of it.
func TestPlanOneMemory(t *testing.T) {
	for gpu, most := range map[string]int64{"8060S": 112 << 30, "m4 max": 112 << 30} { // seven eighths of 128 GiB
		stdout, stderr, code := leat(t, "plan", "demo", "--gpu", gpu, "--ram", "128GiB", "--json")
		var r planReport
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		if n := r.Plan.VRAMBudget + r.Plan.RAMBudget; n > most || n < most/2 {
			t.Errorf("%s: %d MiB of VRAM, %d of RAM", gpu, r.Plan.VRAMBudget>>20, r.Plan.RAMBudget>>20)
		}
	}
}

func TestPredictionLine(t *testing.T) {
	s := runStats{DecodePerSec: 14.5, Predicted: &predict.Prediction{DecodePerSec: 14.1, BoundPerSec: 14.21, DecodeBottleneck: predict.LaneLink}}
	if got, want := s.prediction(), "predicted 14.1, reached 14.5 tok/s (+3 %); the link is the bottleneck, 14.2 tok/s its bound"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	s.SteadyPerSec = 15.2 // the first step of one row built kernels
	if got, want := s.prediction(), "predicted 14.1, reached 15.2 tok/s from the second token on (+8 %); the link is the bottleneck, 14.2 tok/s its bound"; got != want {
		t.Errorf("found %q, wanted %q", got, want)
	}
	for _, s := range []runStats{{DecodePerSec: 1}, {Predicted: &predict.Prediction{}}} {
		if got := s.prediction(); got != "" {
			t.Errorf("with nothing to compare: %q", got)
		}
	}
}

func TestPlanTables(t *testing.T) {
	for n, want := range map[int64]string{6 << 30: "6GiB", 6165 << 20: "6165MiB", 4 << 20: "4MiB"} {
		if got := budgetText(n); got != want {
			t.Errorf("budgetText(%d) = %q, want %q", n, got, want)
		}
		var back sizeFlag
		if err := back.Set(budgetText(n)); err != nil || int64(back) != n {
			t.Errorf("--vram %s is %d, want %d", budgetText(n), back, n)
		}
	}
	for o, want := range map[float64]string{0: "0%", 0.004: "0%", 0.93: "+93%", 6.41: "+641%", 14: ">10x"} {
		if got := overheadText(o); got != want {
			t.Errorf("overheadText(%g) = %q, want %q", o, got, want)
		}
	}
	stdout, stderr, code := leat(t, "plan", "demo", "--gpu", "4090", "--train")
	if code != exitOK || !strings.Contains(stdout, "free from") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// Of a mixture a token uses a part, and all of it streams.
func TestTrainMixture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "mixtral", Hollow: true}); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	layers, bytes, active, adapter := layerSums(m, 8)
	// 256 wide, 8 heads and 4 for keys of 32, 4 experts of 512 of which 2 are used.
	attention, router, expert := 2*256*256+2*256*128, 4*256, 3*256*512
	if want := float64(4 * (attention + router + 2*expert + 2*256)); layers != 4 || active != want {
		t.Errorf("%d layers, %.0f active, want 4 and %.0f", layers, active, want)
	}
	if want := float64(4 * 8 * (2*512 + 2*(256+128))); adapter != want {
		t.Errorf("the adapter has %.0f parameters, want %.0f", adapter, want)
	}
	if bytes < int64(4*4*expert/2) {
		t.Errorf("%d bytes leave experts out", bytes)
	}
}
