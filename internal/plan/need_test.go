package plan_test

import (
	"errors"
	"leat/gguf"
	"testing"

	"leat/internal/plan"
	"leat/internal/plan/gpus"
	"leat/tools/synth/synthetic"
)

// within varies the VRAM alone.
func within(b plan.Budget) func(int64) (plan.Budget, error) {
	return func(deviceBytes int64) (plan.Budget, error) {
		b := b
		b.DeviceBytes = deviceBytes
		return b, nil
	}
}

func TestNeed(t *testing.T) {
	h, m := preset(t, "8b")
	g, err := gpus.Find("RTX 4090")
	if err != nil {
		t.Fatal(err)
	}
	q := plan.Question{Hyper: h, Model: m, Within: within(plan.Budget{HostBytes: 1 << 30, ContextLength: 4096, KVType: gguf.F16}), Speeds: plan.Reached(&g, 7e9), Context: 128, Prompt: 512}
	least, err := q.Least()
	if err != nil {
		t.Fatal(err)
	}
	_, tooSmall := q.At(least - 1<<20)
	var budget *plan.BudgetError
	if _, err := q.At(least); err != nil || !errors.As(tooSmall, &budget) {
		t.Errorf("least is %d MiB: there %v, a MiB below %v", least>>20, err, tooSmall)
	}
	all, err := q.All()
	if err != nil {
		t.Fatal(err)
	}
	if a, err := q.At(all); err != nil || a.Plan.StreamedBytes != 0 {
		t.Errorf("all in %d MiB: %v", all>>20, err)
	}
	if a, err := q.At(all - all/16 - 1<<20); err != nil || a.Plan.StreamedBytes == 0 {
		t.Errorf("well below %d MiB nothing is streamed: %v", all>>20, err)
	}
	n, a, err := q.Reaching(20)
	if err != nil || n <= least || n >= all || a.Prediction.DecodePerSec < 20 {
		t.Errorf("20 tok/s: %d MiB of %d to %d, %.1f tok/s, %v", n>>20, least>>20, all>>20, a.Prediction.DecodePerSec, err)
	}
	if b, err := q.At(n - 1<<20); err != nil || b.Prediction.DecodePerSec >= 20 {
		t.Errorf("a MiB less reaches %.2f tok/s, %v", b.Prediction.DecodePerSec, err)
	}
	if n, a, err := q.Reaching(1e6); err != nil || n != 0 || a.Plan.StreamedBytes != 0 {
		t.Errorf("a million tok/s: %d bytes, %v", n, err)
	}
	one, err := q.At(2 << 30)
	if err != nil || one.Prediction.DecodeBottleneck != plan.LaneDisk {
		t.Fatalf("at 2 GiB the bottleneck is %s, %v", one.Prediction.DecodeBottleneck, err)
	}
	b, err := q.Within(2 << 30)
	if err != nil {
		t.Fatal(err)
	}
	two, err := q.Drives(2, b)
	if gain := two.Prediction.DecodePerSec / one.Prediction.DecodePerSec; err != nil || gain < 1.8 || gain > 2.001 {
		t.Errorf("a second drive makes it %.2f times as fast, %v", gain, err)
	}
	if q.Speeds.DiskBytesPerSec != 7e9 {
		t.Error("the question was changed")
	}
}

// What is said to hold all of a model reads its prompts by as many rows as more VRAM would, where that costs little, and is the least
// budget that does.
func TestNeedAll(t *testing.T) {
	for _, o := range []synthetic.Options{{Arch: "llama", Preset: "8b", Hollow: true}, {Arch: "qwen3moe", Preset: "30b-a3b", Hollow: true}} {
		h, m := open(t, o)
		q := plan.Question{Hyper: h, Model: m, Within: within(plan.Budget{HostBytes: 1 << 30, ContextLength: 1024, KVType: gguf.F16, Few: true}), Prompt: 512}
		all, err := q.All()
		if err != nil {
			t.Fatal(err)
		}
		a, err := q.At(all)
		if err != nil {
			t.Fatal(err)
		}
		more, err := q.At(2 * all)
		if err != nil {
			t.Fatal(err)
		}
		if a.Plan.StreamedBytes != 0 || a.Plan.Chunk != more.Plan.Chunk {
			t.Errorf("%s: all in %d MiB, %d bytes of it streamed, by %d rows; in twice that by %d", o.Arch, all>>20, a.Plan.StreamedBytes, a.Plan.Chunk, more.Plan.Chunk)
		}
		if b, err := q.At(all - 1<<20); err != nil || b.Plan.StreamedBytes == 0 && b.Plan.Chunk >= a.Plan.Chunk {
			t.Errorf("%s: a MiB below %d MiB is as good, %v", o.Arch, all>>20, err)
		}
	}
}
