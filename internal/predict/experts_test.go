package predict_test

import (
	"errors"
	"slices"
	"testing"

	"leat/gguf"
	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/tools/synth/synthetic"
)

func mixture(t *testing.T) (*plan.Plan, func(decode, prompt *predict.ExpertHits) predict.Prediction) {
	t.Helper()
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 6 << 30, HostBytes: 64 << 30, ContextLength: 1024, KVType: gguf.F16})
	s := predict.Speeds{Disk: predict.DiskSpeeds{BytesPerSec: 2e9}, Link: predict.LinkSpeeds{BytesPerSec: 20e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 1e12, FlopsPerSec: 50e12}}
	return p, func(decode, prompt *predict.ExpertHits) predict.Prediction {
		return predict.PlanWithHits(p, s, h, 512, 512, decode, prompt)
	}
}

// What was measured of the experts decides what comes over the link and from disk, of tokens and of prompts each.
func TestPredictFound(t *testing.T) {
	p, of := mixture(t)
	even := of(nil, nil)
	x := p.Experts
	uniform := float64(x.Slots()) / float64(x.Total())
	same := of(&predict.ExpertHits{HitRate: uniform}, nil)
	near(t, "the hit rate of a plan", same.DecodePerSec, even.DecodePerSec, 0.01)
	all := float64(0)
	for i := range p.Units {
		if p.Units[i].Tier == plan.Cached {
			all += float64(p.Units[i].Bytes)
		}
	}
	used := float64(x.Used) / float64(x.Count)
	got := of(&predict.ExpertHits{HitRate: 0.9, DiskShare: 0.25}, &predict.ExpertHits{HitRate: 0.5, Needed: 0.4})
	near(t, "a token's link", got.Decode.LinkSeconds, all*used*0.1/20e9, 1e-6)
	near(t, "a token's disk", got.Decode.DiskSeconds, all*used*0.1*0.25/2e9, 1e-6)
	last := all / 48 // layers, of which the last one has one row to compute
	near(t, "a prompt's link", got.Prefill.LinkSeconds, ((all-last)*0.4+last*used)*0.5/20e9, 0.01)
	if got.DecodePerSec <= even.DecodePerSec || got.PrefillPerSec <= even.PrefillPerSec {
		t.Errorf("more hits are not faster: %.1f and %.1f tok/s, %.1f and %.1f", got.DecodePerSec, got.PrefillPerSec, even.DecodePerSec, even.PrefillPerSec)
	}
	if s := even.Skewed; s == nil || s.Rate <= uniform || s.Rate >= 1 || s.DecodePerSec <= even.DecodePerSec {
		t.Errorf("a skewed router finds %+v, an even one %.2f", s, uniform)
	}
}

// The hit rate of a skewed router is about what a cache reaches that keeps those used most, in a simulation of such routing.
func TestSkewedRate(t *testing.T) {
	const layers, experts, used, steps = 2, 64, 4, 4000
	trace := expertcache.Synthetic{Layers: layers, Experts: experts, Used: used, Skew: 1, Seed: 7}.Routing(0, steps)
	var uses [layers][experts]int
	for _, s := range trace.Steps {
		for i, id := range s.IDs {
			uses[i/used%layers][id]++
		}
	}
	for _, slots := range []int{4, 16, 40, 64} {
		got := predict.ZipfHitRate(experts, used, float64(slots))
		found := 0
		for l := range uses {
			slices.SortFunc(uses[l][:], func(a, b int) int { return b - a })
			for _, n := range uses[l][:slots] {
				found += n
			}
		}
		near(t, "hit rate", got, float64(found)/float64(layers*steps*used), 0.04)
	}
	for _, c := range [][3]float64{{8, 8, 4}, {8, 2, 0}, {8, 2, 8}} {
		if got, want := predict.ZipfHitRate(int(c[0]), int(c[1]), c[2]), c[2]/c[0]; got != want {
			t.Errorf("%v: found %.3f, wanted %.3f", c, got, want)
		}
	}
}

// A long prompt's experts come in waves, and some of them before their layer has chosen: the link hardly rests, though the device computes
// for half as long as it is busy. With one queue they take turns.
func TestPredictWaves(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 6 << 30, HostBytes: 64 << 30, ContextLength: 1024, KVType: gguf.F16})
	s := predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 50e9}, Kernels: predict.KernelSpeeds{FlopsPerSec: 25e12}}
	r := predict.Plan(p, s, h, 1, 512)
	link, compute := r.Prefill.LinkSeconds, r.Prefill.ComputeSeconds
	if share := compute / link; share < 0.3 || share > 0.9 {
		t.Fatalf("no test: %.3f s of compute beside %.3f s on the link", compute, link)
	}
	if r.TTFTSeconds < link || r.TTFTSeconds > link+0.15*compute {
		t.Errorf("a prompt takes %.3f s; its link is busy for %.3f, its kernels for %.3f", r.TTFTSeconds, link, compute)
	}
	short := predict.Plan(p, s, h, 1, 32) // which experts it needs nobody knows before
	if ahead := short.Prefill.LinkSeconds + short.Prefill.ComputeSeconds - short.TTFTSeconds; ahead < 0 || ahead > short.Prefill.ComputeSeconds {
		t.Errorf("a short prompt takes %.3f s, %+v", short.TTFTSeconds, short.Prefill)
	}
	s.Link.OneQueue = true
	if r := predict.Plan(p, s, h, 1, 512); r.TTFTSeconds < 0.999*(r.Prefill.LinkSeconds+r.Prefill.ComputeSeconds) {
		t.Errorf("with one queue a prompt takes %.3f s, %+v", r.TTFTSeconds, r.Prefill)
	}
}

// More VRAM never makes a mixture slower, nor does a higher hit rate, from the least budget up to all.
func TestPredictSlots(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	b := plan.Budget{DeviceBytes: 1, HostBytes: 1 << 30, ContextLength: 1024, KVType: gguf.F16}
	_, err := plan.Make(h, m, b)
	var small *plan.BudgetError
	if !errors.As(err, &small) {
		t.Fatal(err)
	}
	s := predict.Speeds{Disk: predict.DiskSpeeds{BytesPerSec: 3e9}, Link: predict.LinkSpeeds{BytesPerSec: 25e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 300e9, FlopsPerSec: 5e12}}
	var speed float64
	for i, vram := range []int64{small.Need, 2 << 30, 6 << 30, 12 << 30} {
		for _, ram := range []int64{1, 7 << 30, 64 << 30} {
			b.DeviceBytes, b.HostBytes = vram, ram
			p := mustMake(t, h, m, b)
			got := predict.Plan(p, s, h, 512, 512)
			rates := got.HitRates
			for k := 1; k < len(rates); k++ {
				if rates[k].DecodePerSec < rates[k-1].DecodePerSec {
					t.Errorf("more hits are slower: %v", rates)
				}
			}
			if ram == 64<<30 {
				if got.DecodePerSec < speed {
					t.Errorf("budget %d: %.1f tok/s, with less VRAM %.1f", i, got.DecodePerSec, speed)
				}
				speed = got.DecodePerSec
			}
		}
	}
}
