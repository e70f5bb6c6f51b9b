package predict_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/tools/synth/synthetic"
)

// law is the machine of these tests: what a step of a layer takes, by how many positions its
// rows see on average.
func law(c predict.LayerClass, s predict.StepShape) float64 {
	size := float64(c.First.Bytes)
	seen := float64(s.Context) - float64(s.Rows-1)/2
	return 1e-11*size + 1e-12*size*float64(s.Rows) + 1e-7*float64(s.Rows)*seen
}

// rehearse is a rehearsal of a model on that machine.
func rehearse(h *arch.Hyper, m *pack.Model, steps ...predict.StepShape) *predict.Rehearsal {
	r := &predict.Rehearsal{Steps: steps, Layers: map[string][]float64{}, Bytes: map[string]int64{}, Head: 3e-3}
	for _, c := range predict.LayerClasses(h, m) {
		for _, s := range steps {
			r.Layers[c.Class] = append(r.Layers[c.Class], law(c, s))
		}
		r.Bytes[c.Class] = c.First.Bytes
	}
	for range steps {
		r.Overhead = append(r.Overhead, 1e-3)
	}
	return r
}

// With all in VRAM a step takes what was rehearsed: all layers of each class, the head, the rest.
func TestRehearsed(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Preset: "8b", Hollow: true})
	classes := predict.LayerClasses(h, m)
	count := 0
	for _, c := range classes {
		count += c.Count
	}
	if len(classes) != 2 || count != h.BlockCount {
		t.Fatalf("%d classes of %d layers in a Q4_K_M of %d", len(classes), count, h.BlockCount)
	}
	step := func(rows, ctx int) predict.StepShape { return predict.StepShape{Rows: rows, Context: ctx} }
	r := rehearse(h, m, step(1, 1), step(64, 64), step(256, 256), step(1, 1024), step(256, 2048))
	all := func(s predict.StepShape) (sum float64) {
		for _, c := range classes {
			sum += float64(c.Count) * law(c, s)
		}
		return sum
	}
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 64 << 30, HostBytes: 1 << 30, ContextLength: 4096, Chunk: 512})
	speeds := predict.Speeds{Kernels: predict.KernelSpeeds{BytesPerSec: 1, FlopsPerSec: 1}, Rehearsal: r} // which nothing asks
	for _, ctx := range []int{1, 300, 1024, 4000} {
		near(t, "decode", predict.Plan(p, speeds, h, ctx, 1).DecodeSeconds, all(step(1, ctx))+4e-3, 1e-6)
	}
	for _, prompt := range []int{64, 200, 256, 512} { // within what was run, between, and beyond
		near(t, "prefill", predict.Plan(p, speeds, h, 1, prompt).TTFTSeconds, all(step(prompt, prompt))+4e-3, 0.05)
	}
	near(t, "two chunks", predict.Plan(p, speeds, h, 1, 1024).TTFTSeconds, all(step(512, 512))+all(step(512, 1024))+5e-3, 0.05)

	streamed := mustMake(t, h, m, plan.Budget{DeviceBytes: 3 << 30, HostBytes: 64 << 30, ContextLength: 4096, Chunk: 512})
	near(t, "streamed over a quick link", predict.Plan(streamed, speeds, h, 300, 1).DecodeSeconds, all(step(1, 300))+4e-3, 1e-6)

	// A class that was not run is taken for the nearest one.
	delete(r.Layers, classes[1].Class)
	delete(r.Bytes, classes[1].Class)
	near(t, "a class unknown", predict.Plan(p, speeds, h, 1, 1).DecodeSeconds, all(step(1, 1))+4e-3, 0.02)
}

// A layer that has experts was run with them: its time is all of its units', in VRAM and in slots, where the host is asked
// for each layer as well.
func TestPredictRehearsedExperts(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	classes := predict.LayerClasses(h, m)
	if len(classes) != 2 || len(classes[0].Experts) != h.Experts.Count {
		t.Fatalf("%d classes, %d experts in the first, wanted 2 with %d", len(classes), len(classes[0].Experts), h.Experts.Count)
	}
	one := predict.StepShape{Rows: 1, Context: 1}
	r := rehearse(h, m, one)
	want := 0.0
	for _, c := range classes {
		want += float64(c.Count) * law(c, one)
	}
	speeds := predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e15}, Kernels: predict.KernelSpeeds{BytesPerSec: 1, FlopsPerSec: 1}, Rehearsal: r}
	whole := mustMake(t, h, m, plan.Budget{DeviceBytes: 64 << 30, HostBytes: 1 << 30, ContextLength: 1024, Chunk: 64})
	decode := predict.Plan(whole, speeds, h, 1, 1).DecodeSeconds
	near(t, "all in VRAM", decode, want+4e-3, 1e-6)
	slots := mustMake(t, h, m, plan.Budget{DeviceBytes: 6 << 30, HostBytes: 64 << 30, ContextLength: 1024, Chunk: 64})
	if slots.Experts == nil {
		t.Fatal("the experts share no slots")
	}
	const us = 1e-6
	missing := func(rate float64) float64 { return 1 - math.Pow(rate, float64(h.Experts.Used)) }
	for _, c := range []struct {
		trip, ahead float64 // rehearsed; 0 and 0: assumed
		burst       float64 // 0: guessed from a link that is as good as none
		rate, want  float64 // of the experts found; of a layer
	}{
		{0, 0, 0, 1, 6 * us}, {0, 0, 0, 0, 80 * us}, {0, 0, 0, 0.9, 80 * us},
		{60 * us, 0, 0, 1, 60 * us}, {60 * us, 0, 0, 0, 60 * us}, // none can go ahead
		{60 * us, 5 * us, 100 * us, 1, 5 * us}, {60 * us, 5 * us, 100 * us, 0, 118 * us}, // handed in when the choice was heard
		{60 * us, 5 * us, 100 * us, 0.9, (60 + missing(0.9)*58) * us},          // beside that the others run
		{60 * us, 5 * us, 100 * us, 0.99, (5 + missing(0.99)*(60+50+58)) * us}, // dispatches that are left out take no time here
	} {
		r.HostTrip, r.ConditionalTrip = c.trip, c.ahead
		if speeds.Link.Bursts = nil; c.burst > 0 {
			speeds.Link.Bursts = []predict.Burst{{Bytes: 1, Seconds: c.burst}, {Bytes: 1 << 40, Seconds: c.burst}}
		}
		found := &predict.ExpertHits{HitRate: c.rate}
		near(t, fmt.Sprintf("in slots, %+v", c), predict.PlanWithHits(slots, speeds, h, 1, 1, found, found).DecodeSeconds-decode, c.want*float64(h.BlockCount), 1e-3)
	}
	forced := mustMake(t, h, m, plan.Budget{DeviceBytes: 64 << 30, ContextLength: 1024, Chunk: 64, Sweep: plan.Sweep{Slots: true}})
	if x := forced.Experts; x == nil || x.Slots() != x.Total() || forced.StreamedBytes != 0 {
		t.Errorf("slots that were asked for hold not all experts, or %d bytes are streamed", forced.StreamedBytes)
	}
}

// What is no rehearsal, as of an older program's file, is not believed.
func TestRehearsedSound(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Preset: "8b", Hollow: true})
	good := func() *predict.Rehearsal { return rehearse(h, m, predict.StepShape{Rows: 1, Context: 1}) }
	if !good().Sound() {
		t.Error("a good one is not sound")
	}
	for name, spoil := range map[string]func(*predict.Rehearsal){
		"no layers": func(r *predict.Rehearsal) { r.Layers = nil },
		"no steps":  func(r *predict.Rehearsal) { r.Steps = nil },
		"no first":  func(r *predict.Rehearsal) { r.Steps = []predict.StepShape{{Rows: 2, Context: 2}} },
		"no rows": func(r *predict.Rehearsal) {
			r.Steps, r.Overhead = append(r.Steps, predict.StepShape{Context: 4}), append(r.Overhead, 0)
		},
		"no rest":  func(r *predict.Rehearsal) { r.Overhead = nil },
		"no bytes": func(r *predict.Rehearsal) { clear(r.Bytes) },
		"a layer short": func(r *predict.Rehearsal) {
			for c := range r.Layers {
				r.Layers[c] = nil
			}
		},
	} {
		r := good()
		if spoil(r); r.Sound() {
			t.Errorf("%s: it is sound", name)
		}
	}
	if (*predict.Rehearsal)(nil).Sound() {
		t.Error("none is sound")
	}
}

// Two models share a rehearsal where their layers are alike, however many there are.
func TestSignature(t *testing.T) {
	sign := func(o synthetic.Options, kv gguf.Type) string {
		o.Arch, o.Hollow = "llama", true
		h, m := open(t, o)
		return predict.RehearsalKey(h, m, kv)
	}
	shape := func(change func(*synthetic.Shape)) synthetic.Options {
		s := synthetic.Shape{BlockCount: 8}
		change(&s)
		return synthetic.Options{Shape: s}
	}
	same := shape(func(*synthetic.Shape) {})
	base := sign(same, gguf.F16)
	if sign(shape(func(s *synthetic.Shape) { s.BlockCount = 16 }), gguf.F16) != base {
		t.Error("more layers of the same kinds are another model")
	}
	other := same
	other.Type = "q8_0"
	for name, s := range map[string]string{
		"cache of F32": sign(same, gguf.F32),
		"wider":        sign(shape(func(s *synthetic.Shape) { s.FeedForwardLength = 1024 }), gguf.F16),
		"vocabulary":   sign(shape(func(s *synthetic.Shape) { s.VocabSize = 1000 }), gguf.F16),
		"type":         sign(other, gguf.F16),
	} {
		if s == base {
			t.Errorf("%s: it is taken for the same", name)
		}
	}
}

// One queue: uploads and kernels take turns. Two: they don't, but slow each other down.
func TestPredictQueues(t *testing.T) {
	h, m := preset(t, "8b")
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 2 << 30, HostBytes: 64 << 30, ContextLength: 1024, Chunk: 64})
	s := predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 50e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 100e9}}
	link, compute := float64(p.StreamedBytes)/50e9, predict.Plan(p, s, h, 1, 1).Decode.ComputeSeconds
	if link < 1.1*compute {
		t.Fatalf("link %.3f s, compute %.3f s: the link is no bottleneck", link, compute)
	}
	r := predict.Plan(p, s, h, 1, 1)
	near(t, "two queues", r.DecodeSeconds, link, 1e-3)
	s.Link.BusyBytesPerSec = 40e9 // while kernels run, a fifth is lost
	r = predict.Plan(p, s, h, 1, 1)
	near(t, "two queues, the link under load", r.DecodeSeconds, link+compute/5, 1e-3)
	s.Link.OneQueue = true
	r = predict.Plan(p, s, h, 1, 1)
	near(t, "one queue", r.DecodeSeconds, link+compute, 1e-3)
	near(t, "one queue's bound", r.BoundPerSec, 1/(link+compute), 1e-3)
	if r.DecodeBottleneck != predict.LaneLink {
		t.Errorf("the %s is the bottleneck", r.DecodeBottleneck)
	}
	s.Link.BusyBytesPerSec, s.Link.OneQueue, s.Kernels.BytesPerSec = 25e9, false, 20e9 // kernels run all the time
	r = predict.Plan(p, s, h, 1, 1)
	near(t, "kernels all the time", r.Decode.LinkSeconds, 2*link, 1e-3)
}

// At rest the ring is full: a prompt does not wait for what it begins with.
func TestPredictRested(t *testing.T) {
	h, m := preset(t, "8b")
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 2 << 30, HostBytes: 64 << 30, ContextLength: 1024, Chunk: 64})
	r := predict.Plan(p, predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e9}}, h, 1, 64)
	saved := r.Prefill.LinkSeconds - r.TTFTSeconds
	if ring := float64(p.RingSize()) / 1e9; saved <= 0 || saved > ring {
		t.Errorf("the first token waits %.3f s less than all bytes take; the ring holds %.3f s of them", saved, ring)
	}
	// The head is of no use before the prompt's last chunk.
	two := predict.Plan(p, predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e9}}, h, 1, 128)
	var head int64
	for i := range p.Units {
		if u := &p.Units[i]; u.Kind == pack.Head && !u.Resident() {
			head += u.Bytes
		}
	}
	near(t, "two chunks", two.Prefill.LinkSeconds, 2*r.Prefill.LinkSeconds-float64(head)/1e9, 1e-9)
}

// The units of a layer share its time; the sum is the layer's, wherever it is cut.
func TestRehearsedParts(t *testing.T) {
	h, m := preset(t, "8b")
	r := rehearse(h, m, predict.StepShape{Rows: 1, Context: 1})
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 2 << 30, HostBytes: 64 << 30, ContextLength: 1024, Chunk: 64})
	if !slices.ContainsFunc(p.Units, func(u plan.Unit) bool { return u.Kind == pack.Layer && len(u.Tensors) < 4 }) {
		t.Fatal("no layer is cut")
	}
	var want float64
	for _, c := range predict.LayerClasses(h, m) {
		want += float64(c.Count) * law(c, r.Steps[0])
	}
	got := predict.Plan(p, predict.Speeds{Rehearsal: r}, h, 1, 1).Decode.ComputeSeconds
	near(t, "compute", got, want+4e-3, 1e-9)
}

// A streamed unit is submitted by itself: what a rehearsal found that to take comes to the kernels, beside the link where
// there is one queue; where the link hid it, nothing is known of it, nor is it asked for.
func TestPredictStreamed(t *testing.T) {
	h, m := preset(t, "8b")
	one := predict.StepShape{Rows: 1, Context: 1}
	r := rehearse(h, m, one)
	compute := 4e-3
	for _, c := range predict.LayerClasses(h, m) {
		compute += float64(c.Count) * law(c, one)
	}
	budget := plan.Budget{DeviceBytes: 2 << 30, HostBytes: 64 << 30, ContextLength: 1024, Chunk: 64}
	p := mustMake(t, h, m, budget)
	budget.DeviceBytes = 64 << 30
	whole := mustMake(t, h, m, budget)
	units, bytes := 0.0, float64(p.StreamedBytes)
	for i := range p.Units {
		if !p.Units[i].Resident() {
			units++
		}
	}
	r.Streamed = predict.StreamedLayers{Seconds: 30e-3, Resident: 10e-3, Units: 10, Bytes: 1e9}
	for _, c := range []struct {
		name string
		s    predict.Speeds
		want float64
	}{
		{"one queue", predict.Speeds{Link: predict.LinkSpeeds{OneQueue: true, BytesPerSec: 1e11}}, compute + bytes/1e11 + units*1e-3},
		{"one queue, a link that takes all of it", predict.Speeds{Link: predict.LinkSpeeds{OneQueue: true, BytesPerSec: 2e10}}, compute + bytes/2e10},
		{"two queues", predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e12}}, compute + units*2e-3},
		{"two queues, a link slower than the kernels", predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e10}}, bytes / 1e10},
	} {
		c.s.Rehearsal = r
		near(t, c.name, predict.Plan(p, c.s, h, 1, 1).DecodeSeconds, c.want, 1e-3)
		near(t, c.name+", all in VRAM", predict.Plan(whole, c.s, h, 1, 1).DecodeSeconds, compute, 1e-6)
	}
	if r.Streamed.Seconds = 9e-3; predict.Plan(p, predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e12}, Rehearsal: r}, h, 1, 1).DecodeSeconds < compute*(1-1e-6) {
		t.Error("noise makes streamed units faster than those in VRAM")
	}
}
