package predict_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"leat/gguf"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/tools/synth/synthetic"
)

// measured is what a machine reached, and what was measured of it before: testdata says how.
type measured struct {
	Disk   float64 `json:"disk_bytes_per_second"`
	Device struct {
		Link struct {
			Idle   float64         `json:"idle_bytes_per_second"`
			Busy   float64         `json:"busy_bytes_per_second"`
			Bursts []predict.Burst `json:"bursts"`
		} `json:"link"`
		Rests    bool  `json:"rests"`
		Dispatch int64 `json:"dispatch_ns"`
		Step     int64 `json:"step_ns"`
	} `json:"device"`
	Rehearsed *predict.Rehearsal `json:"rehearsed"`
	Rows      []measuredRow      `json:"rows"`
}

type measuredRow struct {
	Skew      float64   `json:"skew"` // of the router
	VRAM      int64     `json:"vram_gib"`
	RAM       float64   `json:"ram_gib"`
	Context   int       `json:"context"`
	HitRate   float64   `json:"hit_rate"`
	DiskShare float64   `json:"disk_share"`
	PerSec    float64   `json:"tokens_per_second"`
	Each      []float64 `json:"repetitions"`
}

// Tokens of a mixture whose experts share slots are predicted within a tenth, from RAM and from disk, whether layers miss half of their
// experts or one in a hundred, by what was measured of that machine.
func TestPredictMeasuredExperts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "h200-experts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all measured
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Rows) < 8 {
		t.Fatalf("%d rows", len(all.Rows))
	}
	d := &all.Device
	s := predict.Speeds{
		Disk:                predict.DiskSpeeds{BytesPerSec: all.Disk},
		Link:                predict.LinkSpeeds{BytesPerSec: d.Link.Idle, BusyBytesPerSec: d.Link.Busy, Bursts: d.Link.Bursts},
		Kernels:             predict.KernelSpeeds{DispatchTime: time.Duration(d.Dispatch)},
		IdleClock:           d.Rests,
		HostOverheadPerStep: time.Duration(d.Step),
		Rehearsal:           all.Rehearsed,
	}
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	for _, r := range all.Rows {
		p := mustMake(t, h, m, plan.Budget{DeviceBytes: r.VRAM << 30, HostBytes: int64(r.RAM * (1 << 30)), ContextLength: 1024, KVType: gguf.F16, Matrices: true, FewRowKernels: true})
		got := predict.PlanWithHits(p, s, h, r.Context, 1, &predict.ExpertHits{HitRate: r.HitRate, DiskShare: r.DiskShare}, nil)
		t.Logf("%d GiB, skew %g, %4.1f %% found, %2.0f %% from disk: predicted %6.4g, measured %6.4g (%+.1f %%)", r.VRAM, r.Skew, 100*r.HitRate, 100*r.DiskShare, got.DecodePerSec, r.PerSec, 100*(r.PerSec/got.DecodePerSec-1))
		if least, most := slices.Min(r.Each), slices.Max(r.Each); most > 1.2*least { // the first ones still brought experts: hits of all say little of one
			if got.DecodePerSec < least || got.DecodePerSec > most {
				t.Errorf("predicted %.4g, measured %.4g to %.4g", got.DecodePerSec, least, most)
			}
			continue
		}
		near(t, "tok/s", got.DecodePerSec, r.PerSec, 0.1)
	}
}
