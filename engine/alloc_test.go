package engine_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
	"leat/internal/trace"
	"leat/tools/testdata"
)

// A decode step allocates nothing, wherever the weights live, whether or not someone records
// it, and whether or not it can be canceled; Generate allocates a token's text. What a context
// takes, a session makes once for all steps under it.
func TestNoAllocation(t *testing.T) {
	if raceOn {
		t.Skip("not under the race detector")
	}
	if os.Getenv("LEAT_VALIDATE") == "1" {
		t.Skip("counted in the run without the layers")
	}
	path, experts := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf"), filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf")
	least := leastBudget(t, path, setup(engine.Options{ContextLength: 1024, Tuning: engine.Tuning{Chunk: 8}}))
	leastExperts := leastBudget(t, experts, setup(engine.Options{ContextLength: 1024, Tuning: engine.Tuning{Chunk: 8}}))
	stopped, running := trace.New(1<<16), trace.New(1<<16)
	stopped.Start()
	stopped.Stop()
	running.Start()
	for i, c := range []struct {
		name, path string
		vram, host int64
		rec        *trace.Recorder
	}{
		{"resident", path, 0, 0, nil},
		{"from host memory", path, least, 1 << 30, nil},
		{"from disk", path, least, 1, nil},
		{"from disk, recorded no more", path, least, 1, stopped},
		{"from disk, recorded", path, least, 1, running},
		{"experts", experts, 0, 0, nil},
		{"experts from host memory", experts, leastExperts, 1 << 30, nil},
		{"experts that go ahead", experts, leastExperts * 2, 1 << 30, nil},
		{"biases and sinks", filepath.Join("testdata", "gpt-oss-nano.gguf"), 0, 0, nil},
		{"latent attention", filepath.Join("testdata", "deepseek3-nano.gguf"), 0, 0, nil},
		{"states", filepath.Join("testdata", "qwen3next-nano.gguf"), 0, 0, nil},
		{"two tables of tokens", filepath.Join("testdata", "gemma4-nano.gguf"), 0, 0, nil},
	} {
		if c.rec == nil && !inTurn(i) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			o := setup(engine.Options{ContextLength: 1024, DeviceBytes: c.vram, HostBytes: c.host, Tuning: engine.Tuning{Chunk: 8, Trace: engine.TraceOf(c.rec, nil)}})
			if strings.HasSuffix(c.name, "ahead") {
				o = engine.WithAhead(o)
			}
			m := load(t, c.path, engine.WithRoutes(o, true, true))
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ids := []token.ID{1}
			allocations(t, "Forward", 0, func() error {
				_, err := s.Forward(context.Background(), ids)
				return err
			})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			allocations(t, "Forward, with a context that may end", 0, func() error {
				_, err := s.Forward(ctx, ids)
				return err
			})
			if x := m.Stats().Experts; (x.Ahead > 0) != strings.HasSuffix(c.name, "ahead") {
				t.Errorf("layers that went ahead: %+v", x)
			}
			if c.rec != nil {
				return // it knows nothing of Generate
			}
			for name, p := range map[string]sample.Params{"greedy": {}, "sampled": {Temperature: 0.8, TopK: 40, TopP: 0.9}} {
				next, stop := iter.Pull2(s.Generate(ctx, ids, engine.Params{Params: p, IgnoreEOG: true}))
				allocations(t, "Generate, "+name, 1, func() error {
					_, err, _ := next()
					return err
				})
				stop()
			}
		})
	}
	if len(running.Spans()) == 0 || len(stopped.Spans()) > 0 || running.Dropped() > 0 {
		t.Errorf("recorded %d spans while running, %d while stopped, dropped %d", len(running.Spans()), len(stopped.Spans()), running.Dropped())
	}
}

// allocations counts those of steps, after a few to warm up, in all goroutines.
func allocations(t *testing.T, what string, most float64, step func() error) {
	t.Helper()
	const steps, growth = 8, 3 // the session's list of tokens, or one more command buffer to upload with
	do := func() {
		for range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	do()
	var n float64
	for range 20 { // what the runtime allocates now and then, and uploads until they have buffers enough, they don't every time
		if n = testing.AllocsPerRun(1, do); n <= steps*most+growth { // which runs it once more before
			return
		}
	}
	t.Errorf("%s: %v allocations in %d steps, want at most %v a step", what, n, steps, most)
}
