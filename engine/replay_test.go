package engine_test

import (
	"context"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/engine/trace"
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
			o := engine.Options{ContextLength: 160, Sessions: 2}
			if i == 1 {
				o.Trace = trace.New(1 << 10)
			}
			m := load(t, path, o)
			if err := m.Loaded(context.Background()); err != nil {
				t.Fatal(err)
			}
			var open [2]*engine.Session
			for j := range open {
				s, err := m.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				open[j] = s
			}
			a, b := open[0], open[1]
			step := func(s *engine.Session, ids ...token.ID) {
				t.Helper()
				l, err := s.Forward(context.Background(), ids)
				if err != nil {
					t.Fatal(err)
				}
				logits[i] = append(logits[i], slices.Clone(l))
			}
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
