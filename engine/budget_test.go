package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"leat/decompose"
	"leat/decompose/pack"
	"leat/engine"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/plan"
	"leat/internal/predict/gpus"
	"leat/tools/synth/synthetic"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

const gib = 1 << 30

// sources are a model whose tensors a kernel reads where they lie on disk, the same where they begin elsewhere, and that as a pack.
func sources(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"aligned": filepath.Join(dir, "a.gguf"), "unaligned": filepath.Join(dir, "u.gguf"), "pack": filepath.Join(dir, "pack")}
	shape := synthetic.Shape{BlockCount: 3, EmbeddingLength: 64, VocabSize: 300}
	for name, alignment := range map[string]int64{"aligned": 32, "unaligned": 8} {
		if err := synthetic.Write(paths[name], synthetic.Options{Arch: "llama", Type: "q4_0", Shape: shape, Alignment: alignment}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := decompose.Run(t.Context(), paths["unaligned"], paths["pack"], decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	return paths
}

func opened(t *testing.T, path string) (*arch.Hyper, *pack.Model) {
	t.Helper()
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

// machines are those that differ in what a budget is.
var machines = map[string]budget.Machine{
	"discrete":                     {FreeBytes: 24 * gib, AvailableBytes: 28 * gib},
	"shared":                       {FreeBytes: 20 * gib, AvailableBytes: 28 * gib, UMA: true, Shared: mem.Imported},
	"shared, mapped":               {FreeBytes: 20 * gib, AvailableBytes: 28 * gib, UMA: true, Shared: mem.Mapped},
	"shared, and nothing in place": {FreeBytes: 20 * gib, AvailableBytes: 28 * gib, UMA: true},
	"CPU":                          {FreeBytes: 28 * gib, AvailableBytes: 28 * gib, UMA: true, CPU: true, Shared: mem.Imported},
}

var asked = map[string]engine.Options{
	"nothing": {}, "VRAM": {DeviceBytes: 6 * gib}, "RAM": {HostBytes: 3 * gib}, "both": {DeviceBytes: 6 * gib, HostBytes: 3 * gib}, "all RAM": {HostBytes: 64 * gib},
	"a context": {ContextLength: 77}, "uploads": {Tuning: engine.Tuning{Discrete: true}},
}

func request(t *testing.T, o engine.Options) *budget.Request {
	t.Helper()
	w, err := engine.RequestOf(o)
	if err != nil {
		t.Fatal(err)
	}
	return &w
}

// What is allowed depends on the machine, on what was asked for, and on whether the file's tensors can be read in place. One memory is counted
// once, and leaves the system its share.
func TestBudget(t *testing.T) {
	for source, path := range sources(t) {
		h, m := opened(t, path)
		for where, on := range machines {
			for what, o := range asked {
				b := request(t, o).Budget(&on, h, m)
				name := fmt.Sprintf("%s on %s, asked for %s: %.1f and %.1f GiB, in place %v", source, where, what, float64(b.DeviceBytes)/gib, float64(b.HostBytes)/gib, b.InPlace)
				if want := source != "unaligned" && on.Shared != mem.NotShared && !o.Tuning.Discrete && (!on.CPU || o.DeviceBytes == 0); b.InPlace != want {
					t.Errorf("%s, wanted %v", name, want)
				}
				if o.DeviceBytes > 0 && b.DeviceBytes != o.DeviceBytes || b.HostBytes > o.HostBytes && o.HostBytes > 0 || b.ContextLength != o.ContextLength || b.KVType != gguf.F16 {
					t.Errorf("%s: not what was asked for", name)
				}
				most := on.AvailableBytes / 8 * 7
				if on.UMA && b.DeviceBytes+b.HostBytes > most || !on.UMA && (b.DeviceBytes > on.FreeBytes || o.HostBytes == 0 && b.HostBytes > most) {
					t.Errorf("%s: more than there is", name)
				}
				if b.DeviceBytes < 5*gib || b.HostBytes == 0 && !b.InPlace {
					t.Errorf("%s: too little", name)
				}
			}
		}
	}
	var option *engine.OptionError
	if _, err := engine.RequestOf(engine.Options{KVType: "q1"}); !errors.As(err, &option) {
		t.Errorf("a wrong option: %v", err)
	}
}

// A model is loaded within the budget that it is planned with by all others, whatever the machine, what was asked for and the file.
func TestBudgetLoaded(t *testing.T) {
	vktest.Instance(t)
	paths := sources(t)
	for where, on := range machines {
		for _, o := range []engine.Options{{}, {DeviceBytes: 2 << 20}, {DeviceBytes: 2 << 20, HostBytes: 1 << 20}} {
			for source, path := range paths {
				o.ContextLength, o.Tuning.Chunk, o.Pace = 64, 8, "off"
				if on.UMA && on.Shared != mem.NotShared {
					on.Shared = mem.Mapped // any device has that
				}
				h, file := opened(t, path)
				b := request(t, o).Budget(&on, h, file)
				want, err := plan.Make(h, file, b)
				if err != nil {
					t.Fatal(err)
				}
				m := load(t, path, engine.WithMachine(setup(o), &on))
				if got := engine.BudgetOf(m); !reflect.DeepEqual(got, b) {
					t.Errorf("%s on %s: loaded within %+v, planned %+v", source, where, got, b)
				}
				got := engine.DetailsOf(m).Plan
				if got.DeviceBytes != want.DeviceBytes || got.DeviceBudget != want.DeviceBudget || got.HostBytes != want.HostBytes || got.ContextLength != want.ContextLength || got.InPlace != want.InPlace || got.StreamedBytes != want.StreamedBytes {
					t.Errorf("%s on %s: loaded %d of %d bytes, RAM %d, %d tokens; planned %d of %d, %d, %d", source, where,
						got.DeviceBytes, got.DeviceBudget, got.HostBytes, got.ContextLength, want.DeviceBytes, want.DeviceBudget, want.HostBytes, want.ContextLength)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Options see the machine that they are examined on as the model does that they load.
func TestExamine(t *testing.T) {
	inst := vktest.Instance(t)
	p, err := inst.Pick("")
	if err != nil {
		t.Fatal(err)
	}
	on, err := request(t, engine.Options{}).Examine(t.Context(), inst, p, slog.Default())
	if err != nil || on.UMA != p.Features.UMA || on.CPU != (p.Type == vk.CPU) || on.FreeBytes <= 0 || on.UMA && on.Shared == mem.NotShared {
		t.Errorf("found %+v, %v", on, err)
	}
	if on, err = request(t, engine.Options{Tuning: engine.Tuning{Discrete: true}}).Examine(t.Context(), inst, p, slog.Default()); err != nil || on.Shared != mem.NotShared {
		t.Errorf("with uploads alone: %+v, %v", on, err)
	}
}

// On all GPUs that have one memory with the CPU it is counted once, and the system keeps its share; a discrete one's is its own.
func TestBudgetOfGPUs(t *testing.T) {
	h, m := opened(t, sources(t)["aligned"])
	for _, g := range gpus.All() {
		for _, ram := range []int64{0, 8 * gib, 24 * gib, 128 * gib, 512 * gib} {
			on := budget.OfGPU(&g, ram)
			b := request(t, engine.Options{}).Budget(&on, h, m)
			memory := ram
			if ram == 0 {
				memory = g.RAMBytes()
			}
			switch sum := b.DeviceBytes + b.HostBytes; {
			case !g.UMA && (b.DeviceBytes >= g.VRAMBytes || b.DeviceBytes < g.VRAMBytes/16*14 || b.HostBytes > memory/8*7 || b.InPlace):
				t.Errorf("%s and %d GiB: %+v", g.Name, memory/gib, b)
			case g.UMA && (sum > memory-memory/8 || sum < memory/2 || !b.InPlace):
				t.Errorf("%s with %d GiB in all: %.1f and %.1f GiB, in place %v", g.Name, memory/gib, float64(b.DeviceBytes)/gib, float64(b.HostBytes)/gib, b.InPlace)
			}
		}
	}
}
