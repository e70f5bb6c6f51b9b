package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/testdata"
	"leat/vk"
)

// Decoding submits the commands of the token before again where all weights are in VRAM. What comes out is what steps
// give that are recorded each: a trace has them so. Tokens cross the borders of attention's parts (64 positions), two
// sessions take turns, one is cut back, and logits are asked for in between.
func TestReplay(t *testing.T) {
	alone(t)
	for _, path := range []string{demo, "testdata/gpt-oss-nano.gguf", "testdata/qwen35moe-nano.gguf"} {
		var logits [2][][]float32
		var steps, submissions [2]int64
		for i := range 2 {
			o := setup(engine.Options{ContextLength: 160, Sessions: 2})
			if i == 1 {
				o.Tuning.Trace = engine.NewTrace(1 << 10)
			} else if path == demo {
				o = engine.WithPolling(o)
			}
			m := load(t, path, o)
			if err := m.Loaded(context.Background()); err != nil {
				t.Fatal(err)
			}
			a, b, step := taken(t, path, m, &logits[i])
			step(a, 5, 6, 7)
			step(b, 9)
			before := m.Stats()
			for n := range 68 {
				step(a, token.ID(20+n%40))
				if n%8 == 3 {
					step(b, token.ID(30+n%11))
				}
			}
			after := m.Stats()
			steps[i], submissions[i] = after.Steps-before.Steps, after.Submissions-before.Submissions
			if err := a.Truncate(40); err != nil {
				t.Fatal(err)
			}
			for n := range 6 {
				step(a, token.ID(50-n))
			}
			if got, err := greedy(a, 4); err != nil {
				t.Fatal(err)
			} else if logits[i] = append(logits[i], got); len(got) != 4 {
				t.Fatalf("found %d tokens, want 4", len(got))
			}
		}
		for n := range logits[0] {
			if !slices.Equal(logits[0][n], logits[1][n]) {
				t.Fatalf("%s: step %d differs from one that is recorded", path, n)
			}
		}
		if submissions[0] > steps[0]+8 || submissions[1] <= steps[1]+8 {
			t.Errorf("%s: %d steps took %d submissions, recorded each %d; want few more than one a step", path, steps[0], submissions[0], submissions[1])
		}
	}
}

// taken are two sessions and how one steps: its logits go to the others.
func taken(t *testing.T, name string, m *engine.Model, logits *[][]float32) (a, b *engine.Session, step func(s *engine.Session, ids ...token.ID)) {
	t.Helper()
	var open [2]*engine.Session
	for i := range open {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		open[i] = s
	}
	return open[0], open[1], func(s *engine.Session, ids ...token.ID) {
		t.Helper()
		l, err := s.Forward(t.Context(), ids)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		*logits = append(*logits, slices.Clone(l))
	}
}

// Where experts share slots the commands between two looks of the host at a router's choice are submitted again, whether the
// experts are there, come or have to go, in few slots or many. A step is stopped at each look at its context, and VRAM is taken
// in between. What comes out is what a model in the same slots gives whose steps are recorded each.
func TestReplaySlots(t *testing.T) {
	demo := func(quant string) string { return filepath.Join(testdata.Demo(t), "leat-demo-moe-"+quant+".gguf") }
	tiny := func(arch string) string { return filepath.Join(testdata.Dir(t), "models", arch+"-tiny-q4_k_m.gguf") }
	for n, c := range []struct {
		path  string
		part  float64 // of the VRAM between the least and all
		host  int64
		exact bool // no kernels for speed
		keeps bool // there is no VRAM to take
	}{
		{demo("q8_0"), 0.16, 1 << 30, false, false}, // hardly more slots than a layer needs: some have three waves
		{demo("q4_k_m"), 0.5, 1 << 30, true, false},
		{demo("q8_0"), 0.8, 1, false, false},
		{demo("q4_k_m"), 0.25, 1, false, false},
		{tiny("mixtral"), 0.3, 1 << 30, false, false},
		{tiny("qwen3moe"), 0.4, 1 << 30, false, false},
		{"testdata/deepseek3-nano.gguf", 0.4, 1, false, true},
		{"testdata/qwen35moe-nano.gguf", 0.6, 1 << 30, false, true},
	} {
		if testing.Short() && n%3 > 0 || os.Getenv("LEAT_VALIDATE") == "1" && n%2 > 0 && n > 1 { // the layers see the same calls of all
			continue
		}
		name := fmt.Sprintf("%s, %.0f %%", filepath.Base(c.path), 100*c.part)
		var logits [3][][]float32
		var begun, layers, ahead [3]int64
		for i := range 3 {
			var begins, take atomic.Int64
			o := setup(engine.Options{ContextLength: 160, Sessions: 2, Tuning: engine.Tuning{Chunk: 8, Discrete: true}})
			if c.exact {
				o = exact(o)
			}
			o = engine.WithRoutes(o, !c.exact, !c.exact)
			if !c.keeps {
				o = engine.WithHeadroom(o, func() int64 { return 1<<30 - take.Swap(0) }, 64<<10)
			}
			o = engine.WithDeviceFault(o, func(call string) vk.Result {
				if call == "vkBeginCommandBuffer" {
					begins.Add(1)
				}
				return 0
			})
			least := leastBudget(t, c.path, o)
			whole := load(t, c.path, o)
			all := engine.DetailsOf(whole).Plan.DeviceBytes
			if err := whole.Close(); err != nil {
				t.Fatal(err)
			}
			o.DeviceBytes, o.HostBytes = least+int64(c.part*float64(all-least)), c.host
			switch i {
			case 1:
				o.Tuning.Trace = engine.NewTrace(1 << 10)
			case 2:
				o = engine.WithAhead(o)
			}
			m := load(t, c.path, o)
			if slotsOf(m) == 0 {
				t.Fatalf("%s: the experts share no slots", name)
			}
			if err := m.Loaded(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, b, step := taken(t, name, m, &logits[i])
			step(a, 5, 6, 7)
			step(b, 9)
			before, from := m.Stats(), begins.Load()
			for n := range 68 {
				step(a, token.ID(20+n%40))
				if n%8 == 3 {
					step(b, token.ID(30+n%11))
				}
			}
			begun[i] = begins.Load() - from
			x := m.Stats().Experts.Less(before.Experts)
			layers[i], ahead[i] = x.Layers, x.Ahead
			logits[i] = append(logits[i], stoppedAtEachLook(t, m, a, 17))
			step(a, 18)
			take.Store(1<<30 + (all-least)/6)
			for n := range 12 {
				step(a, token.ID(40-n))
			}
			if got := m.Stats().Shrinks; (len(got) == 1) == c.keeps {
				t.Errorf("%s: VRAM was taken once, found %v", name, got)
			}
			if got, err := greedy(b, 8); err != nil {
				t.Fatal(err)
			} else {
				logits[i] = append(logits[i], got)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for n := range logits[0] {
			for i, how := range []string{0: "in parts", 2: "whose layers go ahead"} {
				if how != "" && !slices.Equal(logits[i][n], logits[1][n]) {
					t.Fatalf("%s: step %d %s differs from one that is recorded", name, n, how)
				}
			}
		}
		t.Logf("%s: %d commands begun, %d where all is recorded, of %d layers; %d where %d layers went ahead", name, begun[0], begun[1], layers[1], begun[2], ahead[2])
		if ahead[0]+ahead[1] > 0 || c.part >= 0.5 && ahead[2] == 0 || ahead[2] == layers[2] {
			t.Errorf("%s: layers that went ahead: %d, of %d", name, ahead, layers)
		}
		if layers[0] != layers[1] || layers[2] != layers[1] || begun[1]-begun[0] < layers[1]*3/4 {
			t.Errorf("%s: %d command buffers were begun, %d where each step is recorded; want one less in most of %d layers", name, begun[0], begun[1], layers[1])
		}
	}
}

// stoppedAtEachLook runs a step whose context ends when it is looked at for the first time, then for the second, until it ends
// before.
func stoppedAtEachLook(t *testing.T, m *engine.Model, s *engine.Session, id token.ID) []float32 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := s.Len()
	for looks := int64(1); ; looks++ {
		at, end := context.WithCancel(ctx)
		l := &looked{Context: at, end: func() { end(); go m.Wake() }}
		l.left.Store(looks)
		s.LookAt(ctx, l)
		got, err := s.Forward(ctx, []token.ID{id})
		s.LookAt(t.Context(), t.Context())
		end()
		if err == nil {
			if looks < 8 {
				t.Errorf("a step looks at its context only %d times", looks)
			}
			return slices.Clone(got)
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("look %d: ended with %v", looks, err)
		}
		if err := s.Truncate(n); err != nil { // else it would run, too
			t.Fatal(err)
		}
	}
}

// greedy generates n tokens, as numbers.
func greedy(s *engine.Session, n int) (ids []float32, err error) {
	for tok, err := range s.Generate(context.Background(), []token.ID{3}, engine.Params{MaxTokens: n, IgnoreEOG: true}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, float32(tok.ID))
	}
	return ids, nil
}
