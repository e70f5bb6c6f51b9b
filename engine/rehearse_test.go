package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"leat/decompose"
	"leat/engine"
	"leat/engine/token"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/trace"
	"leat/tools/await"
	"leat/tools/synth/synthetic"
	"leat/vk"
	"leat/vk/vktest"
)

// small writes a model that a rehearsal runs in a moment.
func small(t *testing.T, o synthetic.Options) (path string, classes []predict.LayerClass, h *arch.Hyper) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, o); err != nil {
		t.Fatal(err)
	}
	classes, h = classesOf(t, path)
	return path, classes, h
}

func classesOf(t *testing.T, path string) ([]predict.LayerClass, *arch.Hyper) {
	t.Helper()
	h, m := opened(t, path)
	return predict.LayerClasses(h, m), h
}

func hurry(o engine.Setup) engine.Setup { return engine.WithHurry(lend(o)) }

// A rehearsal runs the kernels that the model runs: one that does not know what the device can
// do times others.
func TestRehearseKernels(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	path, _, _ := small(t, synthetic.Options{Arch: "llama", Type: "q4_k_m", Shape: synthetic.Shape{EmbeddingLength: 256, FeedForwardLength: 512}})
	var kernels trace.Ops
	opts := setup(engine.Options{ContextLength: 128, DeviceBytes: 64 << 20, Pace: "off", Tuning: engine.Tuning{Chunk: 32, Trace: engine.TraceOf(nil, &kernels)}})
	if _, err := engine.RehearseSetup(t.Context(), path, hurry(opts)); err != nil {
		t.Fatal(err)
	}
	rehearsed := map[string]bool{}
	ops, _ := kernels.Take()
	for _, op := range ops {
		rehearsed[op.Name] = true
	}
	s, err := load(t, path, opts).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int{32, 1} {
		if _, err := s.Forward(t.Context(), make([]token.ID, n)); err != nil {
			t.Fatal(err)
		}
	}
	ops, steps := kernels.Take()
	if steps != 2 || len(ops) < 10 {
		t.Errorf("%d steps with %d kernels", steps, len(ops))
	}
	for _, op := range ops {
		if !rehearsed[op.Name] {
			t.Errorf("%s runs, and was not rehearsed", op.Name)
		}
	}
}

// A rehearsal knows each kind of layer, by steps from one row up to a chunk, and a plan
// predicts with it. It leaves nothing behind.
func TestRehearse(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	for _, o := range []synthetic.Options{
		{Arch: "llama", Shape: synthetic.Shape{BlockCount: 8}},
		{Arch: "qwen3", Shape: synthetic.Shape{BlockCount: 3, TiedEmbeddings: true}},
		{Arch: "llama", Shape: synthetic.Shape{RopeFactor: 8}},
		{Arch: "qwen3moe", Shape: synthetic.Shape{BlockCount: 4, ExpertCount: 8}},
	} {
		t.Run(o.Arch, func(t *testing.T) {
			path, classes, h := small(t, o)
			rehearse(t, path, classes, h)
		})
	}
}

// Layers that differ by their number are rehearsed each as what it is: leading dense ones, those
// with a window, those that have a state in place of a cache.
func TestRehearseLayers(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	for name, want := range map[string]int{"gemma4": 4, "glm4moe": 2, "gpt-oss": 2, "kimi-linear": 3, "qwen3next": 2} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+"-nano.gguf")
			classes, h := classesOf(t, path)
			if len(classes) != want {
				t.Errorf("%d classes of layers, wanted %d", len(classes), want)
			}
			rehearse(t, path, classes, h)
		})
	}
}

// rehearse runs a rehearsal and looks that it is whole.
func rehearse(t *testing.T, path string, classes []predict.LayerClass, h *arch.Hyper) {
	t.Helper()
	before := runtime.NumGoroutine()
	opts := setup(engine.Options{ContextLength: 128, Tuning: engine.Tuning{Chunk: 16}, DeviceBytes: 64 << 20, Pace: "off"})
	r, err := engine.RehearseSetup(t.Context(), path, hurry(opts))
	if err != nil {
		t.Fatal(err)
	}
	await.Goroutines(t, before)
	if !r.Sound() || len(r.Layers) != len(classes) || r.Chunk != 16 {
		t.Fatalf("%d layers of %d classes, chunk %d: %+v", len(r.Layers), len(classes), r.Chunk, r)
	}
	if s := r.Streamed; h.Experts.Count == 0 && (s.Units < 2 || s.Bytes <= 0 || s.Seconds <= 0 || s.Resident <= 0) {
		t.Errorf("layers that are streamed: %+v", s)
	}
	most, longest := 0, 0
	for i, s := range r.Steps {
		most, longest = max(most, s.Rows), max(longest, s.Context)
		for j := range i {
			if r.Steps[j] == s {
				t.Errorf("%+v was run twice", s)
			}
		}
	}
	if most != 16 || longest <= 16 {
		t.Errorf("steps of %d rows and %d positions at most: %+v", most, longest, r.Steps)
	}
	p := engine.DetailsOf(load(t, path, opts)).Plan
	if got := predict.Plan(&p, predict.Speeds{Rehearsal: r}, h, 64, 16); got.DecodeSeconds <= 0 || got.TTFTSeconds <= 0 {
		t.Errorf("predicted %+v", got)
	}
}

// It fits into what the plan has, with fewer layers if it must; where not even two fit, or it
// is canceled, it says so.
func TestRehearseBudget(t *testing.T) {
	vktest.Instance(t)
	path, _, _ := small(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 8, VocabSize: 8000}})
	o := setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 8}, DeviceBytes: 1, HostBytes: 1 << 20})
	_, err := engine.LoadSetup(t.Context(), path, lend(o))
	o.DeviceBytes = budgetNeed(t, err)
	if _, err := engine.RehearseSetup(t.Context(), path, hurry(o)); err == nil {
		t.Logf("the least budget holds a rehearsal")
	}
	o.DeviceBytes = 16 << 20
	if _, err := engine.RehearseSetup(t.Context(), path, hurry(o)); err != nil {
		t.Errorf("within %d bytes: %v", o.DeviceBytes, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine.RehearseSetup(canceled, path, o); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	before := runtime.NumGoroutine()
	bad := errors.New("bad sector")
	_, err = engine.RehearseSetup(t.Context(), path, engine.WithFault(o, func(string, int64, int64) error { return bad }))
	if !errors.Is(err, bad) {
		t.Errorf("a disk that fails: %v", err)
	}
	await.Goroutines(t, before)
}

// Before anything is timed a GPU has been busy for long enough to bring its clock up; slow
// first steps, which build pipelines, count for nothing, and don't end the search for the
// largest one.
func TestRehearseWarm(t *testing.T) {
	alone(t)
	const each = 10 * time.Millisecond
	p := &plan.Plan{Chunk: 64, ContextLength: 4096}
	for device, least := range map[vk.DeviceType]time.Duration{vk.Discrete: 400 * time.Millisecond, vk.Integrated: 400 * time.Millisecond, vk.CPU: each} {
		seen, began := map[int]bool{}, false
		var busy time.Duration
		most := 0
		steps, err := engine.Watched(device, p, func(s predict.StepShape) time.Duration {
			began = began || s.Rows > 1
			most = max(most, s.Rows)
			if !seen[s.Rows] {
				seen[s.Rows] = true
				return 2 * time.Second
			}
			if !began {
				busy += each
			}
			return each
		})
		if err != nil {
			t.Fatal(err)
		}
		if busy -= each; busy < least || busy > least+400*time.Millisecond { // one of those is timed
			t.Errorf("%v: %v of work before the first step that is timed, wanted %v", device, busy, least)
		}
		if most != p.Chunk {
			t.Errorf("%v: %d steps of up to %d rows, wanted %d", device, len(steps), most, p.Chunk)
		}
	}
}

// The largest steps take what they take after a while of nothing else, when a GPU has come to the end of its power; a CPU has no
// such while.
func TestRehearseLong(t *testing.T) {
	p := &plan.Plan{Chunk: 512, ContextLength: 4096}
	const fast, slow = 10 * time.Millisecond, 12 * time.Millisecond
	for device, want := range map[vk.DeviceType]time.Duration{vk.Discrete: slow, vk.Integrated: slow, vk.CPU: fast} {
		var full time.Duration // at full power, on end
		took, _, err := engine.Timed(device, p, func(s predict.StepShape) time.Duration {
			if s.Rows < p.Chunk {
				full = 0
				return fast
			}
			if full += fast; full > 500*time.Millisecond {
				return slow
			}
			return fast
		})
		if err != nil {
			t.Fatal(err)
		}
		for s, seconds := range took {
			if s.Rows == p.Chunk && seconds != want.Seconds() || s.Rows < p.Chunk && seconds != fast.Seconds() {
				t.Errorf("%v: %+v takes %.3f s, wanted %v", device, s, seconds, want)
			}
		}
	}
}

// Steps of one row are timed as decoding runs them: by commands that were recorded before, where a step is short.
func TestRehearseReplayed(t *testing.T) {
	vktest.Instance(t)
	path, _, _ := small(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 3}})
	var begun, submitted atomic.Int64
	count := func(call string) vk.Result {
		switch call {
		case "vkBeginCommandBuffer":
			begun.Add(1)
		case "vkQueueSubmit":
			submitted.Add(1)
		}
		return 0
	}
	o := setup(engine.Options{ContextLength: 1024, Tuning: engine.Tuning{Chunk: 8}, Pace: "off"})
	if _, err := engine.RehearseSetup(t.Context(), path, hurry(engine.WithDeviceFault(o, count))); err != nil {
		t.Fatal(err)
	}
	// Two views have steps of one row in four contexts, each twice at least.
	if again := submitted.Load() - begun.Load(); again < 16 {
		t.Errorf("%d of %d submissions were of what was recorded before", again, submitted.Load())
	}
	// The clock takes the second of two equal steps.
	p := &plan.Plan{Chunk: 2, ContextLength: 4096}
	for each, want := range map[time.Duration]bool{time.Millisecond: true, 100 * time.Millisecond: false} {
		steps, err := engine.Watched(vk.Discrete, p, func(predict.StepShape) time.Duration { return each })
		if err != nil {
			t.Fatal(err)
		}
		shape, twice := predict.StepShape{Rows: 1, Context: 256}, 0
		for i := range steps[1:] {
			if steps[i] == shape && steps[i+1] == shape {
				twice++
			}
		}
		if twice > 0 != want {
			t.Errorf("of steps that take %v, %d were run twice in a row", each, twice)
		}
	}
}

// A striped pack is rehearsed with the bytes of all its folders.
func TestRehearseStriped(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	path, _, _ := small(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 3}})
	dir := t.TempDir()
	striped := filepath.Join(dir, "pack")
	if _, err := decompose.Run(t.Context(), path, striped, decompose.Options{Stripe: []string{filepath.Join(dir, "second")}, StripeBytes: 16 << 10}); err != nil {
		t.Fatal(err)
	}
	r, err := engine.RehearseSetup(t.Context(), striped, hurry(setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 8}, Pace: "off"})))
	if err != nil || !r.Sound() {
		t.Errorf("%+v, %v", r, err)
	}
}
