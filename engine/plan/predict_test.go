package plan_test

import (
	"math"
	"testing"
	"time"

	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/plan"
	"leat/engine/plan/gpus"
	"leat/gguf"
	"leat/tools/synth/synthetic"
)

// preset opens a model of full size that holds no weights.
func preset(t *testing.T, name string) (*arch.Hyper, *pack.Model) {
	t.Helper()
	return open(t, synthetic.Options{Arch: "llama", Preset: name, Hollow: true})
}

func mustMake(t *testing.T, h *arch.Hyper, m *pack.Model, b plan.Budget) *plan.Plan {
	t.Helper()
	if b.KVType == 0 {
		b.KVType = gguf.F16
	}
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: found %.4g, wanted %.4g within %.0f %%", what, got, want, 100*within)
	}
}

// What was measured on an H100, from its data sheet: an 8B within these budgets, a 30B-A3B of which a token uses a tenth. The estimate
// was fitted to the rows in VRAM, so these test the arithmetic; the others are predictions.
func TestPredictH100(t *testing.T) {
	g, err := gpus.Find("H100")
	if err != nil {
		t.Fatal(err)
	}
	dense := synthetic.Options{Arch: "llama", Preset: "8b", Type: "q4_k_m", Hollow: true}
	for _, c := range []struct {
		name           string
		model          synthetic.Options
		vram           int64
		link           float64
		decode, prompt float64 // measured; 0: not
		within         float64
		bottleneck     plan.Lane
	}{
		{"all in VRAM", dense, 75 << 30, 0, 277, 12773, 0.28, plan.LaneCompute},
		{"2 GiB", dense, 2 << 30, 50e9, 15.6, 0, 0.05, plan.LaneLink},
		{"a mixture, all in VRAM", synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true}, 75 << 30, 0, 229, 0, 0.25, plan.LaneCompute},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, m := open(t, c.model)
			s := plan.Reached(&g, 1.6e9)
			p := mustMake(t, h, m, plan.Budget{DeviceBytes: c.vram, HostBytes: 100 << 30, ContextLength: 1024, Matrices: true, Few: true})
			if c.link > 0 {
				s.LinkBytesPerSec, s.LinkBusyBytesPerSec = c.link, 0.97*c.link
			}
			r := p.Predict(s, h, 65, 512)
			near(t, "decode tok/s", r.DecodePerSec, c.decode, c.within)
			if c.prompt > 0 {
				near(t, "prompt tok/s", r.PrefillPerSec, c.prompt, c.within)
			}
			if r.DecodeBottleneck != c.bottleneck {
				t.Errorf("bottleneck %s, wanted %s", r.DecodeBottleneck, c.bottleneck)
			}
			t.Logf("%.1f tok/s (measured %.1f), bound %.1f, lock-step %.1f; prompt %.0f tok/s (%.0f)", r.DecodePerSec, c.decode, r.BoundPerSec, r.LockStepPerSec, r.PrefillPerSec, c.prompt)
		})
	}
}

// Each lane's sum is what it says: bytes over rate, operations over rate.
func TestPredictWork(t *testing.T) {
	h, m := preset(t, "8b")
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 3 << 30, HostBytes: 1 << 30, ContextLength: 1024, Chunk: 128})
	if p.DiskBytes == 0 || p.DiskBytes == p.StreamedBytes {
		t.Fatalf("the plan has no mix: %d of %d from disk", p.DiskBytes, p.StreamedBytes)
	}
	var weights, flops float64
	for _, u := range p.Units {
		for _, x := range u.Tensors {
			if len(x.Shape) == 2 {
				weights += float64(x.Bytes)
				if u.Kind == pack.Layer {
					flops += 2 * float64(x.Shape[0]*x.Shape[1])
				}
			}
		}
	}
	r := p.Predict(plan.Speeds{DiskBytesPerSec: 2e9, LinkBytesPerSec: 10e9, DeviceBytesPerSec: 100e9}, h, 1, 1)
	near(t, "disk", r.Decode.DiskSeconds, float64(p.DiskBytes)/2e9, 1e-9)
	near(t, "link", r.Decode.LinkSeconds, float64(p.StreamedBytes)/10e9, 1e-9)
	near(t, "compute", r.Decode.ComputeSeconds, weights/100e9, 1e-3) // and a little cache
	near(t, "bound", r.BoundPerSec, 2e9/float64(p.DiskBytes), 1e-9)

	// A disk is slower with what it is asked for the first time: that concerns loading alone.
	once := p.Predict(plan.Speeds{DiskBytesPerSec: 2e9, DiskFirstBytesPerSec: 1e9, LinkBytesPerSec: 10e9, DeviceBytesPerSec: 100e9}, h, 1, 1)
	near(t, "load", once.LoadSeconds, 2*r.LoadSeconds, 1e-9)
	near(t, "decode", once.DecodeSeconds, r.DecodeSeconds, 1e-9)
	near(t, "first token", once.TTFTSeconds, r.TTFTSeconds, 1e-9)

	r = p.Predict(plan.Speeds{FlopsPerSec: 1e12}, h, 1, 128)
	attention := 4 * 128 * 64.5 * 4096 * 32.
	near(t, "prefill", r.Prefill.ComputeSeconds, (128*flops+attention)/1e12, 1e-6)
	near(t, "TTFT", r.TTFTSeconds, r.Prefill.ComputeSeconds, 1e-9)

	// 12 waits a layer, 33 of them, are kernels of a decoded token; and the host.
	r = p.Predict(plan.Speeds{DispatchTime: time.Microsecond, HostOverheadPerStep: time.Millisecond}, h, 1, 1)
	if n := (r.Decode.ComputeSeconds - 1e-3) * 1e6; n < 32*10 || n > 32*16 {
		t.Errorf("%.0f kernels wait for another in a token", n)
	}
	// A device with kernels for few rows waits less often, and without matrices in long steps as well.
	for _, matrices := range []bool{true, false} {
		q := mustMake(t, h, m, plan.Budget{DeviceBytes: 3 << 30, HostBytes: 1 << 30, ContextLength: 1024, Chunk: 128, Few: true, Matrices: matrices})
		f := q.Predict(plan.Speeds{DispatchTime: time.Microsecond}, h, 1, 9)
		if n, many := f.Decode.ComputeSeconds*1e6, f.Prefill.ComputeSeconds*1e6; n < 32*8 || n > 32*10 || (many < 32*10) == matrices {
			t.Errorf("%.0f kernels wait for another in a step of one row, %.0f in one of nine (matrices %v)", n, many, matrices)
		}
	}
	// A type of its own rate.
	slow := plan.Speeds{DeviceBytesPerSec: 100e9, TypeBytesPerSec: map[gguf.Type]float64{gguf.Q6_K: 1e9}}
	if a, b := p.Predict(slow, h, 1, 1).DecodeSeconds, weights/100e9; a < 5*b {
		t.Errorf("a type a hundred times slower: %.3f s, without it %.3f", a, b)
	}
	if z := p.Predict(plan.Speeds{}, h, 1, 1); z.DecodePerSec != 0 || z.DecodeSeconds != 0 {
		t.Errorf("with no speeds known: %+v", z)
	}
}

// What must hold on any machine, over a grid of budgets and speeds.
func TestPredictProperties(t *testing.T) {
	h, m := preset(t, "8b")
	machines := map[string]plan.Speeds{
		"slow disk":    {DiskBytesPerSec: 0.5e9, LinkBytesPerSec: 12e9, DeviceBytesPerSec: 100e9, FlopsPerSec: 1e12, AttnFlopsPerSec: 1e10, DispatchTime: 5e3, HostOverheadPerStep: 1e5},
		"slow link":    {DiskBytesPerSec: 14e9, LinkBytesPerSec: 3e9, DeviceBytesPerSec: 700e9, FlopsPerSec: 10e12, AttnFlopsPerSec: 1e10, DispatchTime: 5e3, HostOverheadPerStep: 1e5},
		"slow compute": {DiskBytesPerSec: 7e9, LinkBytesPerSec: 25e9, DeviceBytesPerSec: 5e9, FlopsPerSec: 5e9, AttnFlopsPerSec: 1e9},
	}
	for name, s := range machines {
		t.Run(name, func(t *testing.T) {
			for _, ram := range []int64{300 << 20, 2 << 30, 64 << 30} {
				last := 0.0
				for vram := int64(1200 << 20); vram < 6<<30; vram += 100 << 20 {
					p := mustMake(t, h, m, plan.Budget{DeviceBytes: vram, HostBytes: ram, ContextLength: 1024, Chunk: 64})
					r := p.Predict(s, h, 512, 512)
					checkPrediction(t, p, s, h, r)
					// Tiers are dealt by whole units, so a step may cost a part of one.
					if r.DecodePerSec < 0.97*last {
						t.Errorf("vram %d MiB, ram %d MiB: %.3f tok/s, less VRAM gave %.3f", vram>>20, ram>>20, r.DecodePerSec, last)
					}
					last = max(last, r.DecodePerSec)
				}
			}
		})
	}
}

func checkPrediction(t *testing.T, p *plan.Plan, s plan.Speeds, h *arch.Hyper, r plan.Prediction) {
	t.Helper()
	const eps = 1 + 1e-9
	if r.DecodePerSec > r.BoundPerSec*eps {
		t.Errorf("%.3f tok/s is above the bound %.3f", r.DecodePerSec, r.BoundPerSec)
	}
	if r.LockStepPerSec > r.BoundPerSec*eps {
		t.Errorf("lock-step %.3f tok/s is above the bound %.3f", r.LockStepPerSec, r.BoundPerSec)
	}
	if r.DecodePerSec < 0.97*r.LockStepPerSec {
		t.Errorf("%.3f tok/s is below lock-step's %.3f", r.DecodePerSec, r.LockStepPerSec)
	}
	// What the ring and staging hold has come before the prompt.
	there := float64(p.RingSize()) + float64(int64(p.Staging.Slots)*p.Staging.SlotBytes)
	least := max(r.Prefill.ComputeSeconds, r.Prefill.LinkSeconds-there/s.LinkBytesPerSec, r.Prefill.DiskSeconds-there/s.DiskBytesPerSec)
	if r.TTFTSeconds < least/eps {
		t.Errorf("TTFT %.3f s, the busiest lane alone takes %.3f", r.TTFTSeconds, least)
	}
	for _, faster := range []plan.Speeds{
		with(s, func(s *plan.Speeds) { s.DiskBytesPerSec *= 2 }), with(s, func(s *plan.Speeds) { s.LinkBytesPerSec *= 2 }),
		with(s, func(s *plan.Speeds) { s.DeviceBytesPerSec *= 2 }), with(s, func(s *plan.Speeds) { s.FlopsPerSec *= 2 }),
	} {
		if f := p.Predict(faster, h, 512, 512); f.DecodeSeconds > r.DecodeSeconds*eps || f.TTFTSeconds > r.TTFTSeconds*eps {
			t.Errorf("a faster machine %+v is slower: %.4f and %.4f s, was %.4f and %.4f", faster, f.DecodeSeconds, f.TTFTSeconds, r.DecodeSeconds, r.TTFTSeconds)
		}
	}
	if later := p.Predict(s, h, 1024, 512); later.DecodeSeconds < r.DecodeSeconds/eps {
		t.Errorf("a longer context is faster: %.4f s, was %.4f", later.DecodeSeconds, r.DecodeSeconds)
	}
}

func with(s plan.Speeds, change func(*plan.Speeds)) plan.Speeds {
	change(&s)
	return s
}
