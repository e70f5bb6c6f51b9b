package predict_test

import (
	"errors"
	"testing"

	"leat/gguf"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/predict/gpus"
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
	q := predict.Question{Search: plan.Search{Hyper: h, Model: m, Within: within(plan.Budget{HostBytes: 1 << 30, ContextLength: 4096, KVType: gguf.F16})}, Speeds: predict.FromDataSheet(&g, 7e9), Context: 128, Prompt: 512}
	least, err := q.Least()
	if err != nil {
		t.Fatal(err)
	}
	_, tooSmall := q.At(least - 1<<20)
	var budget *plan.BudgetError
	if _, err := q.At(least); err != nil || !errors.As(tooSmall, &budget) {
		t.Errorf("least is %d MiB: there %v, a MiB below %v", least>>20, err, tooSmall)
	}
	all, err := q.AllResident()
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
	if err != nil || one.Prediction.DecodeBottleneck != predict.LaneDisk {
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
	if q.Speeds.Disk.BytesPerSec != 7e9 {
		t.Error("the question was changed")
	}
}
