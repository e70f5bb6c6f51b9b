package plan_test

import (
	"testing"

	"leat/gguf"
	"leat/internal/plan"
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

// What is said to hold all of a model reads its prompts by as many rows as more VRAM would, where that costs little, and is the least
// budget that does.
func TestNeedAll(t *testing.T) {
	for _, o := range []synthetic.Options{{Arch: "llama", Preset: "8b", Hollow: true}, {Arch: "qwen3moe", Preset: "30b-a3b", Hollow: true}} {
		h, m := open(t, o)
		q := plan.Search{Hyper: h, Model: m, Within: within(plan.Budget{HostBytes: 1 << 30, ContextLength: 1024, KVType: gguf.F16, FewRowKernels: true})}
		all, err := q.AllResident()
		if err != nil {
			t.Fatal(err)
		}
		a, err := q.Make(all)
		if err != nil {
			t.Fatal(err)
		}
		more, err := q.Make(2 * all)
		if err != nil {
			t.Fatal(err)
		}
		if a.StreamedBytes != 0 || a.Chunk != more.Chunk {
			t.Errorf("%s: all in %d MiB, %d bytes of it streamed, by %d rows; in twice that by %d", o.Arch, all>>20, a.StreamedBytes, a.Chunk, more.Chunk)
		}
		if b, err := q.Make(all - 1<<20); err != nil || b.StreamedBytes == 0 && b.Chunk >= a.Chunk {
			t.Errorf("%s: a MiB below %d MiB is as good, %v", o.Arch, all>>20, err)
		}
	}
}
