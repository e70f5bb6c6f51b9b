package plan_test

import (
	"errors"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/synth/synthetic"
)

// TestSlots plans a mixture of 48 layers of 128 experts within budgets from the least up to all: every expert has one place
// to rest, slots keep their budget, and more VRAM is never worse.
func TestSlots(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	b := plan.Budget{DeviceBytes: 1, HostBytes: 1 << 30, ContextLength: 1024, KVType: gguf.F16}
	_, err := plan.Make(h, m, b)
	var small *plan.BudgetError
	if !errors.As(err, &small) {
		t.Fatal(err)
	}
	least := small.Need
	for _, vram := range []int64{least, 2 << 30, 6 << 30, 12 << 30, 20 << 30} {
		for _, ram := range []int64{1, 7 << 30, 64 << 30} {
			b.DeviceBytes, b.HostBytes = vram, ram
			p, err := plan.Make(h, m, b)
			if err != nil {
				t.Fatal(err)
			}
			if p.DeviceBytes > vram || ram > 1<<30 && p.HostBytes > ram {
				t.Errorf("%d of VRAM and %d of RAM: the plan takes %d and %d", vram, ram, p.DeviceBytes, p.HostBytes)
			}
			if vram == 20<<30 {
				if p.Experts != nil || p.StreamedBytes != 0 {
					t.Errorf("all fits, yet there are slots, and %d bytes are streamed", p.StreamedBytes)
				}
				continue
			}
			if p.Experts == nil {
				t.Fatalf("%d of VRAM: no slots", vram)
			}
			checkSlots(t, p, h, m)
			if rests := p.Experts.HostCount; (rests == 0) != (ram == 1) || (rests == p.Experts.Total()) != (ram == 64<<30) || (p.DiskBytes == 0) != (ram == 64<<30) {
				t.Errorf("%d of RAM: %d of %d experts rest there, %d bytes a token come from disk", ram, rests, p.Experts.Total(), p.DiskBytes)
			}
		}
	}
}

// checkSlots demands that each layer has its unit and its class, and that no two experts rest in the same place.
func checkSlots(t *testing.T, p *plan.Plan, h *arch.Hyper, m *pack.Model) {
	t.Helper()
	x := p.Experts
	units, classes := map[int]int{}, map[int]int{}
	for i := range p.Units {
		u := &p.Units[i]
		if u.Tier == plan.Cached {
			units[u.Layer]++
			if prev := &p.Units[i-1]; prev.Kind != pack.Layer || prev.Layer != u.Layer {
				t.Errorf("%s comes after %s", u.Name, prev.Name)
			}
		} else if u.Kind == pack.Experts {
			t.Errorf("%s is in %s", u.Name, u.Tier)
		}
	}
	for _, c := range x.Classes {
		if c.Slots() < h.Experts.Used || c.Slots() > len(c.Layers)*h.Experts.Count {
			t.Errorf("%d slots for %d layers", c.Slots(), len(c.Layers))
		}
		for _, l := range c.Layers {
			classes[l]++
			for _, e := range m.Experts(l) {
				if e.Bytes > c.SlotBytes || e.Bytes < c.SlotBytes*9/10 {
					t.Errorf("%s has %d bytes, its slot %d", e.Name, e.Bytes, c.SlotBytes)
				}
			}
		}
	}
	type place struct {
		block int
		off   int64
	}
	taken, rests := map[place]bool{}, 0
	end := make([]int64, len(x.HostBlocks))
	for l := range h.BlockCount {
		if units[l] != 1 || classes[l] != 1 {
			t.Errorf("layer %d: %d units, %d classes", l, units[l], classes[l])
		}
		inLayer := 0
		for id, e := range m.Experts(l) {
			r := x.HostPlaces[l][id]
			if r.Block < 0 {
				continue
			}
			rests++
			inLayer++
			if at := (place{r.Block, r.Off}); taken[at] || r.Off < end[r.Block] {
				t.Errorf("%s rests where another does", e.Name)
			} else {
				taken[at] = true
			}
			if end[r.Block] = r.Off + plan.HostExtents(&e, nil); end[r.Block] > x.HostBlocks[r.Block] {
				t.Errorf("%s rests outside of its block", e.Name)
			}
		}
		if even := x.HostCount / x.Layers; inLayer < even-1 || inLayer > even+2 {
			t.Errorf("layer %d: %d experts rest in RAM, an even share is %d", l, inLayer, even)
		}
	}
	if rests != x.HostCount {
		t.Errorf("%d experts rest in RAM, the plan says %d", rests, x.HostCount)
	}
}

// TestShrinkSlots gives slots back until no more can be, and then what of the dense part is resident.
func TestShrinkSlots(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Type: "q4_k_m", Shape: synthetic.Shape{BlockCount: 8, ExpertCount: 32}})
	b := plan.Budget{DeviceBytes: 1 << 40, ContextLength: 64, KVType: gguf.F16, Chunk: 8, HostBytes: 1 << 30, Sweep: plan.Sweep{BlockBytes: 600 << 10}}
	all, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	b.DeviceBytes = all.DeviceBytes * 3 / 4
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	given, dense := 0, 0
	for budget := p.DeviceBytes; ; budget -= 300 << 10 {
		q, err := p.Shrink(budget)
		var small *plan.BudgetError
		if errors.As(err, &small) {
			if last, err := p.Shrink(small.Need); err != nil || small.Need <= budget || last.DeviceBytes > small.Need {
				t.Errorf("%d is refused: the least is %d, which does not do: %v", budget, small.Need, err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		checkSlots(t, q, h, m)
		switch {
		case q.DeviceBytes > budget || q.Experts.Slots() > p.Experts.Slots() || q.StreamedBytes < p.StreamedBytes:
			t.Errorf("%d bytes of %d, %d slots, %d bytes streamed", q.DeviceBytes, budget, q.Experts.Slots(), q.StreamedBytes)
		case len(q.Ring) > 0:
			dense++
		case q.Experts.Slots() < p.Experts.Slots():
			given++
			if p.Experts.Slots() == q.Experts.Slots() {
				t.Error("the plan before has changed as well")
			}
		}
	}
	if given == 0 || dense == 0 {
		t.Errorf("no test: %d plans with fewer slots alone, %d that stream the dense part", given, dense)
	}
}

// TestSlotsSplit: what a small GPU has goes to the cache of the context first, a quarter of it at most, then to the dense part, which every
// token reads, and all the rest to slots; what the RAM has goes to experts, spread over the layers. A longer context costs slots alone.
func TestSlotsSplit(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Preset: "30b-a3b", Type: "q4_k_m", Hollow: true})
	const ram = 13 << 29 // 6.5 GiB
	slots := 0
	for _, c := range []struct {
		vram int64
		ctx  int
	}{{6 << 30, 8192}, {6 << 30, 1024}, {6 << 30, 0}, {8 << 30, 8192}, {12 << 30, 0}} {
		p := mustMake(t, h, m, plan.Budget{DeviceBytes: c.vram, HostBytes: ram, ContextLength: c.ctx, KVType: gguf.F16, Matrices: true, FewRowKernels: true})
		x := p.Experts
		if x == nil {
			t.Fatalf("%+v: no slots", c)
		}
		for i := range p.Units {
			if u := &p.Units[i]; u.Tier != plan.VRAM && u.Tier != plan.Cached {
				t.Errorf("%+v: %s is streamed", c, u.Name)
			}
		}
		largest := x.Classes[0].SlotBytes
		if left := c.vram - p.DeviceBytes; left < 0 || left > int64(len(x.Classes))*largest+1<<20 {
			t.Errorf("%+v: %d bytes of VRAM are left, an expert has %d", c, left, largest)
		}
		if left := ram - p.HostBytes; left < 0 || left > 2*largest {
			t.Errorf("%+v: %d bytes of RAM are left, an expert has %d", c, left, largest)
		}
		if c.ctx == 0 && (p.KV.Bytes() > c.vram/4 || p.ContextLength < 4096) {
			t.Errorf("%+v: a context of %d tokens with %d bytes of cache", c, p.ContextLength, p.KV.Bytes())
		}
		if p.Scratch.Bytes > c.vram/8 || p.Chunk < min(1024, p.ContextLength) {
			t.Errorf("%+v: steps of %d rows, %d bytes of scratch", c, p.Chunk, p.Scratch.Bytes)
		}
		if c.ctx == 1024 && x.Slots() <= slots {
			t.Errorf("%+v: %d slots, with the longer context %d", c, x.Slots(), slots)
		}
		slots = x.Slots()
	}
}

// TestOneMemory: where device and host share it, a mixture lies in place if all of it can; else its experts have slots in the
// device's part and rest in the other.
func TestOneMemory(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Type: "q4_k_m", Shape: synthetic.Shape{BlockCount: 8, ExpertCount: 32}})
	b := plan.Budget{DeviceBytes: 1 << 30, HostBytes: 1 << 30, ContextLength: 64, KVType: gguf.F16, Chunk: 8, InPlace: true}
	all, err := plan.Make(h, m, b)
	if err != nil || !all.InPlace || all.Experts != nil || all.StreamedBytes > 0 {
		t.Fatalf("all of it: %+v, %v", all, err)
	}
	for _, c := range []struct{ device, host int64 }{{all.DeviceBytes / 3, all.DeviceBytes / 3}, {all.DeviceBytes / 2, 0}} {
		b.DeviceBytes, b.HostBytes = c.device, c.host
		p, err := plan.Make(h, m, b)
		if err != nil {
			t.Fatal(err)
		}
		if p.InPlace || p.Experts == nil || p.DeviceBytes > c.device || (p.Experts.HostCount > 0) != (c.host > 0) {
			t.Fatalf("%d and %d bytes: in place %t, %+v", c.device, c.host, p.InPlace, p.Experts)
		}
		checkSlots(t, p, h, m)
		if n, most := p.Experts.Slots()+p.Experts.HostCount, p.Experts.Total(); n == 0 || n >= most {
			t.Errorf("%d of %d experts are in memory", n, most)
		}
	}
}

// TestOneMemoryLeast: what an error says is the least, is: of the ways to place a mixture in one memory the one that takes less.
func TestOneMemoryLeast(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "qwen3moe", Type: "q4_k_m", Shape: synthetic.Shape{BlockCount: 8, ExpertCount: 32}})
	b := plan.Budget{DeviceBytes: 1, ContextLength: 64, KVType: gguf.F16, Chunk: 8, InPlace: true}
	var small *plan.BudgetError
	if _, err := plan.Make(h, m, b); !errors.As(err, &small) {
		t.Fatal(err)
	}
	b.DeviceBytes = small.Need
	if _, err := plan.Make(h, m, b); err != nil {
		t.Errorf("with %d bytes, as it said: %v", small.Need, err)
	}
	b.DeviceBytes--
	if p, err := plan.Make(h, m, b); err == nil {
		t.Errorf("with one byte less: in place %t, %d bytes", p.InPlace, p.DeviceBytes)
	}
}
