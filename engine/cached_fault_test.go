package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/tools/await"
	"leat/tools/testdata"
)

// demoSlots loads the demo model of experts within little more than the least VRAM; all else is in RAM, or half of it, or on disk.
func demoSlots(t *testing.T, ram float64, change func(engine.Setup) engine.Setup) *engine.Model {
	t.Helper()
	path := filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf")
	o := exact(setup(engine.Options{ContextLength: 64, HostBytes: 1, Tuning: engine.Tuning{Chunk: 5, Discrete: true}}))
	least := leastBudget(t, path, o)
	o.DeviceBytes = least + least/8
	if ram > 0 {
		o.HostBytes = someRAM(t, path, o, ram)
	}
	m := load(t, path, change(o))
	if slotsOf(m) == 0 {
		t.Fatal("the experts share no slots")
	}
	return m
}

const slotsPrompt = "Once upon a time there was a dog"

// TestExpertsStop: a step whose disk hangs while experts come ends with its context, and the session goes on later with
// the bits that one finds which was never stopped.
func TestExpertsStop(t *testing.T) {
	whole := load(t, filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf"), exact(setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 5}})))
	prompt := whole.Encode(slotsPrompt, true)
	all := logits(t, whole, prompt)
	want := all[len(all)-engine.DetailsOf(whole).Hyper.VocabSize:]
	base := runtime.NumGoroutine()
	moments := []int{0, 9, 30, 55, 80, 140}
	if testing.Short() {
		moments = []int{9, 80}
	}
	for i, n := range moments {
		if !oneIn(min(3, len(moments)), i) {
			continue
		}
		ram := float64(i%2) / 2
		disk := newStuckDisk(n)
		m := demoSlots(t, ram, func(o engine.Setup) engine.Setup {
			if i%3 > 0 {
				o = engine.WithAhead(o)
			}
			return engine.WithFault(o, disk.fault)
		})
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		got, err := untilStuck(t, s, disk, prompt)
		if err == nil && ram == 0 || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("stuck after %d reads: the generation ended with %v", n, err)
		}
		if s.Len() != len(prompt)+got {
			t.Errorf("stuck after %d reads: the session holds %d tokens, wanted the prompt's %d and %d", n, s.Len(), len(prompt), got)
		}
		close(disk.gate)
		if err := s.Truncate(0); err != nil {
			t.Fatal(err)
		}
		logits, err := s.Forward(t.Context(), prompt)
		if err != nil {
			t.Fatalf("stuck after %d reads: then %v", n, err)
		}
		sameBits(t, fmt.Sprintf("stuck after %d reads", n), logits, want)
		s.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	await.Goroutines(t, base)
}

// TestExpertsReadFails: a read of an expert that fails ends the step with the disk's own error, and the session goes on as soon as the disk
// does, with the bits that one finds whose disk never failed.
func TestExpertsReadFails(t *testing.T) {
	bad := errors.New("bad sector")
	whole := load(t, filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf"), exact(setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 5}})))
	prompt := whole.Encode(slotsPrompt, true)
	all := logits(t, whole, prompt)
	want := all[len(all)-engine.DetailsOf(whole).Hyper.VocabSize:]
	base := runtime.NumGoroutine()
	for i, after := range []int64{0, 60, 200} {
		if !oneIn(3, i) {
			continue
		}
		disk := newFailingDisk(after, bad)
		m := demoSlots(t, float64(i%2)/2, func(o engine.Setup) engine.Setup {
			if i%3 > 0 {
				o = engine.WithAhead(o)
			}
			return engine.WithFault(o, disk.fault)
		})
		failsAndGoesOn(t, m, disk, prompt, want)
	}
	await.Goroutines(t, base)
}

// TestExpertsShrink: another program takes VRAM, again and again, down to the least; slots go, and the logits stay.
func TestExpertsShrink(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf")
	base := exact(setup(engine.Options{ContextLength: 128, Tuning: engine.Tuning{Chunk: 8, Discrete: true}}))
	whole := load(t, path, base)
	ids := whole.Encode("Once upon a time there was a dog who lived in a house by the sea with a little girl called Lily and her mother", true)
	for len(ids) < 40 {
		ids = append(ids, ids...)
	}
	ids = ids[:40]
	want := prefillAndDecode(t, whole, ids)
	all, least := engine.DetailsOf(whole).Plan.DeviceBytes, leastBudget(t, path, base)
	for i, host := range []int64{1, 1 << 30} {
		if !oneIn(2, i) {
			continue
		}
		var step, taken atomic.Int64
		o := base
		o.DeviceBytes, o.HostBytes = least+(all-least)*2/3, host
		m := load(t, path, engine.WithHeadroom(engine.WithAhead(o), func() int64 {
			if n := step.Add(1); n%3 == 0 {
				taken.Add(1)
				return -(all - least) / 6
			}
			return 1 << 30
		}, 512<<10))
		before := engine.DetailsOf(m).Plan
		for round := range 2 {
			sameBits(t, fmt.Sprintf("%d of RAM, round %d", host, round+1), prefillAndDecode(t, m, ids), want)
		}
		p, shrinks := engine.DetailsOf(m).Plan, m.Stats().Shrinks
		used := m.Stats().VRAMBytes
		if used != p.DeviceBytes || p.Experts.Slots() >= before.Experts.Slots() || p.StreamedBytes <= before.StreamedBytes || len(shrinks) < 2 {
			t.Errorf("%d bytes in use, %d planned; %d slots, %d before; %d bytes streamed, %d before; shrinks %v", used, p.DeviceBytes, p.Experts.Slots(), before.Experts.Slots(), p.StreamedBytes, before.StreamedBytes, shrinks)
		}
	}
}
