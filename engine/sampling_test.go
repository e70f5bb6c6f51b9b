package engine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
)

// onlyWith is a mask that lets only some tokens through, and remembers what it was told.
type onlyWith struct {
	allowed  map[token.ID]bool
	accepted []token.ID
}

func (m *onlyWith) Mask(logits []float32) {
	for i := range logits {
		if !m.allowed[token.ID(i)] {
			logits[i] = float32(math.Inf(-1))
		}
	}
}

func (m *onlyWith) Accept(id token.ID) { m.accepted = append(m.accepted, id) }

// TestSampling: what Params asks of the sampler reaches it, and what the sampler needs of
// the session does too.
func TestSampling(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 96, Sessions: 2}))
	prompt := m.Encode("Once upon a time there was a", true)
	run := func(t *testing.T, p engine.Params) (out []engine.Token) {
		t.Helper()
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.IgnoreEOG = true
		for tok, err := range s.Generate(t.Context(), prompt, p) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tok)
		}
		return out
	}
	ids := func(toks []engine.Token) (out []token.ID) {
		for _, tok := range toks {
			out = append(out, tok.ID)
		}
		return out
	}
	greedy := ids(run(t, engine.Params{MaxTokens: 4}))

	t.Run("logprobs", func(t *testing.T) {
		for _, c := range []struct {
			name string
			p    engine.Params
		}{
			{"greedy", engine.Params{MaxTokens: 4, Logprobs: 5}},
			{"its own only", engine.Params{MaxTokens: 4, Logprobs: -1}},
			{"sampled", engine.Params{Params: sample.Params{Temperature: 2, TopK: 30, RepeatPenalty: 1.3, Seed: 3}, MaxTokens: 4, Logprobs: 3}},
			{"masked", engine.Params{MaxTokens: 4, Logprobs: 2, Mask: &onlyWith{allowed: map[token.ID]bool{300: true, 301: true}}}},
		} {
			toks := run(t, c.p)
			if c.p.Greedy() && c.p.Mask == nil && !slices.Equal(ids(toks), greedy) {
				t.Errorf("%s: got %v, the device chose %v", c.name, ids(toks), greedy)
			}
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			next := prompt
			for i, tok := range toks {
				l, err := s.Forward(t.Context(), next)
				if err != nil {
					t.Fatal(err)
				}
				of, top := sample.Logprobs(l, tok.ID, c.p.Logprobs)
				if tok.Logprob != of || !slices.Equal(tok.Top, top) || len(top) != max(0, c.p.Logprobs) {
					t.Errorf("%s: token %d: got %g, %v; the logits say %g, %v", c.name, i, tok.Logprob, tok.Top, of, top)
				}
				next = []token.ID{tok.ID}
			}
			s.Close()
		}
		for _, tok := range run(t, engine.Params{MaxTokens: 2}) {
			if tok.Logprob != 0 || tok.Top != nil {
				t.Errorf("nobody asked for the logprobs of %+v", tok)
			}
		}
	})
	t.Run("mask", func(t *testing.T) {
		allowed := make(map[token.ID]bool)
		for _, id := range m.Encode("The little cat and dog sat on green grass", false) {
			allowed[id] = true
		}
		for _, temperature := range []float64{0, 2} {
			mask := &onlyWith{allowed: allowed}
			got := ids(run(t, engine.Params{Params: sample.Params{Temperature: temperature}, MaxTokens: 6, Mask: mask}))
			for _, id := range got {
				if !allowed[id] {
					t.Errorf("temperature %g: token %d is forbidden", temperature, id)
				}
			}
			if !slices.Equal(got, mask.accepted) {
				t.Errorf("temperature %g: the mask was told of %v, generated were %v", temperature, mask.accepted, got)
			}
		}
	})
	t.Run("mask that forbids all", func(t *testing.T) {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		n := 0
		for _, e := range s.Generate(t.Context(), prompt, engine.Params{Mask: &onlyWith{}}) {
			n, err = n+1, e
		}
		if n != 1 || !errors.Is(err, sample.ErrNothingLeft) {
			t.Errorf("ended with %v after %d yields, wanted ErrNothingLeft at once", err, n)
		}
	})
	t.Run("penalties know the prompt", func(t *testing.T) {
		got := ids(run(t, engine.Params{Params: sample.Params{PresencePenalty: 1000, PenaltyLastN: -1}, MaxTokens: 6}))
		for i, id := range got {
			if slices.Contains(prompt, id) || slices.Contains(got[:i], id) {
				t.Errorf("token %d, id %d, has been there before", i, id)
			}
		}
	})
	t.Run("penalties know earlier generations", func(t *testing.T) {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first, _, _ := generate(t, s, prompt, engine.Params{MaxTokens: 4, IgnoreEOG: true})
		p := engine.Params{Params: sample.Params{PresencePenalty: 1000, PenaltyLastN: -1}, MaxTokens: 5, IgnoreEOG: true}
		second, _, _ := generate(t, s, nil, p)
		for _, id := range second {
			if slices.Contains(first, id) || slices.Contains(prompt, id) {
				t.Errorf("id %d has been there before", id)
			}
		}
	})
	t.Run("logit bias", func(t *testing.T) {
		ban := engine.Params{Params: sample.Params{LogitBias: map[int32]float32{greedy[0]: float32(math.Inf(-1))}}, MaxTokens: 3}
		if got := ids(run(t, ban)); slices.Contains(got, greedy[0]) {
			t.Errorf("%v has the banned %d", got, greedy[0])
		}
		want := engine.Params{Params: sample.Params{LogitBias: map[int32]float32{77: 1000}}, MaxTokens: 3}
		if got := ids(run(t, want)); !slices.Equal(got, []token.ID{77, 77, 77}) {
			t.Errorf("got %v, wanted 77 alone", got)
		}
	})
	t.Run("DRY breaks a loop", func(t *testing.T) {
		loop := engine.Params{Params: sample.Params{LogitBias: map[int32]float32{300: 100, 301: 99}}, MaxTokens: 6}
		dry := loop
		dry.DRYMultiplier = 50
		a, b := ids(run(t, loop)), ids(run(t, dry))
		if !slices.Equal(a, slices.Repeat([]token.ID{300}, 6)) || slices.Equal(a, b) {
			t.Errorf("without %v, with DRY %v", a, b)
		}
	})
	t.Run("out of range", func(t *testing.T) {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for name, p := range map[string]engine.Params{
			"top-p": {Params: sample.Params{TopP: 2}}, "logprobs": {Logprobs: -2}, "logprobs ": {Logprobs: 1 << 20}, "max tokens": {MaxTokens: -1},
			"logit bias": {Params: sample.Params{LogitBias: map[int32]float32{1 << 30: 1}}},
		} {
			var err error
			for _, e := range s.Generate(t.Context(), prompt, p) {
				err = e
			}
			var r *sample.RangeError
			if !errors.As(err, &r) || r.Param != strings.TrimSpace(name) || s.Len() != 0 {
				t.Errorf("%s: found error %v and a session of %d tokens, wanted a RangeError and 0", name, err, s.Len())
			}
		}
	})
	t.Run("breakers", func(t *testing.T) {
		got := m.Breakers(".", "!")
		dot, word := m.Encode("Yes.", false), m.Encode("Yes", false)
		if !slices.Contains(got, dot[len(dot)-1]) || slices.Contains(got, word[0]) {
			t.Errorf("of %v and %v, %v break", dot, word, got)
		}
		if none := m.Breakers(); none == nil || len(none) >= len(got) {
			t.Errorf("without texts %d tokens break, with two %d", len(none), len(got))
		}
	})
}
