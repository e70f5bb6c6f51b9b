package predict_test

import (
	"fmt"
	"testing"
	"time"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
)

// Each lane's sum is what it says: bytes over rate, operations over rate.
func TestPredictWork(t *testing.T) {
	h, m := preset(t, "8b")
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 3 << 30, HostBytes: 1 << 30, ContextLength: 1024, Chunk: 128})
	if p.DiskBytes == 0 || p.DiskBytes == p.StreamedBytes {
		t.Fatalf("the plan has no mix: %d of %d from disk", p.DiskBytes, p.StreamedBytes)
	}
	var weights, flops float64
	every := map[string]bool{} // of the last layer, by every row: so the cache has all of them
	for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
		every[fmt.Sprintf("blk.%d.%s.weight", h.BlockCount-1, name)] = true
	}
	for _, u := range p.Units {
		for _, x := range u.Tensors {
			if len(x.Shape) == 2 {
				weights += float64(x.Bytes)
				if last := h.BlockCount - 1; u.Kind == pack.Layer && u.Layer < last || every[x.Name] {
					flops += 2 * float64(x.Shape[0]*x.Shape[1])
				}
			}
		}
	}
	r := predict.Plan(p, predict.Speeds{Disk: predict.DiskSpeeds{BytesPerSec: 2e9}, Link: predict.LinkSpeeds{BytesPerSec: 10e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 100e9}}, h, 1, 1)
	near(t, "disk", r.Decode.DiskSeconds, float64(p.DiskBytes)/2e9, 1e-9)
	near(t, "link", r.Decode.LinkSeconds, float64(p.StreamedBytes)/10e9, 1e-9)
	near(t, "compute", r.Decode.ComputeSeconds, weights/100e9, 1e-3) // and a little cache
	near(t, "bound", r.BoundPerSec, 2e9/float64(p.DiskBytes), 1e-9)

	// A disk is slower with what it is asked for the first time: that concerns loading alone.
	once := predict.Plan(p, predict.Speeds{Disk: predict.DiskSpeeds{BytesPerSec: 2e9, FirstBytesPerSec: 1e9}, Link: predict.LinkSpeeds{BytesPerSec: 10e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 100e9}}, h, 1, 1)
	near(t, "load", once.LoadSeconds, 2*r.LoadSeconds, 1e-9)
	near(t, "decode", once.DecodeSeconds, r.DecodeSeconds, 1e-9)
	near(t, "first token", once.TTFTSeconds, r.TTFTSeconds, 1e-9)

	r = predict.Plan(p, predict.Speeds{Kernels: predict.KernelSpeeds{FlopsPerSec: 1e12}}, h, 1, 128)
	attention := 4*128*64.5*4096*31. + 4*128*4096 // one row of the last layer
	near(t, "prefill", r.Prefill.ComputeSeconds, (128*flops+attention)/1e12, 1e-6)
	near(t, "TTFT", r.TTFTSeconds, r.Prefill.ComputeSeconds, 1e-9)

	// 12 waits a layer, 33 of them, are kernels of a decoded token; and the host.
	r = predict.Plan(p, predict.Speeds{Kernels: predict.KernelSpeeds{DispatchTime: time.Microsecond}, HostOverheadPerStep: time.Millisecond}, h, 1, 1)
	if n := (r.Decode.ComputeSeconds - 1e-3) * 1e6; n < 32*10 || n > 32*16 {
		t.Errorf("%.0f kernels wait for another in a token", n)
	}
	// A device with kernels for few rows waits less often, and without matrices in long steps as well.
	for _, matrices := range []bool{true, false} {
		q := mustMake(t, h, m, plan.Budget{DeviceBytes: 3 << 30, HostBytes: 1 << 30, ContextLength: 1024, Chunk: 128, FewRowKernels: true, Matrices: matrices})
		f := predict.Plan(q, predict.Speeds{Kernels: predict.KernelSpeeds{DispatchTime: time.Microsecond}}, h, 1, 9)
		if n, many := f.Decode.ComputeSeconds*1e6, f.Prefill.ComputeSeconds*1e6; n < 32*8 || n > 32*10 || (many < 32*10) == matrices {
			t.Errorf("%.0f kernels wait for another in a step of one row, %.0f in one of nine (matrices %v)", n, many, matrices)
		}
	}
	// A type of its own rate.
	slow := predict.Speeds{Kernels: predict.KernelSpeeds{BytesPerSec: 100e9, TypeBytesPerSec: map[gguf.Type]float64{gguf.Q6_K: 1e9}}}
	if a, b := predict.Plan(p, slow, h, 1, 1).DecodeSeconds, weights/100e9; a < 5*b {
		t.Errorf("a type a hundred times slower: %.3f s, without it %.3f", a, b)
	}
	if z := predict.Plan(p, predict.Speeds{}, h, 1, 1); z.DecodePerSec != 0 || z.DecodeSeconds != 0 {
		t.Errorf("with no speeds known: %+v", z)
	}
}

// What must hold on any machine, over a grid of budgets and speeds.
func TestPredictProperties(t *testing.T) {
	h, m := preset(t, "8b")
	machines := map[string]predict.Speeds{
		"slow disk":    {Disk: predict.DiskSpeeds{BytesPerSec: 0.5e9}, Link: predict.LinkSpeeds{BytesPerSec: 12e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 100e9, FlopsPerSec: 1e12, AttnFlopsPerSec: 1e10, DispatchTime: 5e3}, HostOverheadPerStep: 1e5},
		"slow link":    {Disk: predict.DiskSpeeds{BytesPerSec: 14e9}, Link: predict.LinkSpeeds{BytesPerSec: 3e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 700e9, FlopsPerSec: 10e12, AttnFlopsPerSec: 1e10, DispatchTime: 5e3}, HostOverheadPerStep: 1e5},
		"slow compute": {Disk: predict.DiskSpeeds{BytesPerSec: 7e9}, Link: predict.LinkSpeeds{BytesPerSec: 25e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 5e9, FlopsPerSec: 5e9, AttnFlopsPerSec: 1e9}},
	}
	for name, s := range machines {
		t.Run(name, func(t *testing.T) {
			for _, ram := range []int64{300 << 20, 2 << 30, 64 << 30} {
				last := 0.0
				for vram := int64(1200 << 20); vram < 6<<30; vram += 100 << 20 {
					p := mustMake(t, h, m, plan.Budget{DeviceBytes: vram, HostBytes: ram, ContextLength: 1024, Chunk: 64})
					r := predict.Plan(p, s, h, 512, 512)
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

func checkPrediction(t *testing.T, p *plan.Plan, s predict.Speeds, h *arch.Hyper, r predict.Prediction) {
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
	least := max(r.Prefill.ComputeSeconds, r.Prefill.LinkSeconds-there/s.Link.BytesPerSec, r.Prefill.DiskSeconds-there/s.Disk.BytesPerSec)
	if r.TTFTSeconds < least/eps {
		t.Errorf("TTFT %.3f s, the busiest lane alone takes %.3f", r.TTFTSeconds, least)
	}
	for _, faster := range []predict.Speeds{
		with(s, func(s *predict.Speeds) { s.Disk.BytesPerSec *= 2 }), with(s, func(s *predict.Speeds) { s.Link.BytesPerSec *= 2 }),
		with(s, func(s *predict.Speeds) { s.Kernels.BytesPerSec *= 2 }), with(s, func(s *predict.Speeds) { s.Kernels.FlopsPerSec *= 2 }),
	} {
		if f := predict.Plan(p, faster, h, 512, 512); f.DecodeSeconds > r.DecodeSeconds*eps || f.TTFTSeconds > r.TTFTSeconds*eps {
			t.Errorf("a faster machine %+v is slower: %.4f and %.4f s, was %.4f and %.4f", faster, f.DecodeSeconds, f.TTFTSeconds, r.DecodeSeconds, r.TTFTSeconds)
		}
	}
	if later := predict.Plan(p, s, h, 1024, 512); later.DecodeSeconds < r.DecodeSeconds/eps {
		t.Errorf("a longer context is faster: %.4f s, was %.4f", later.DecodeSeconds, r.DecodeSeconds)
	}
}

func with(s predict.Speeds, change func(*predict.Speeds)) predict.Speeds {
	change(&s)
	return s
}
