package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
	"leat/tools/testdata"
)

func budgetNeed(t *testing.T, err error) int64 {
	t.Helper()
	var b *engine.BudgetError
	if !errors.As(err, &b) {
		t.Fatalf("found error %v, wanted a BudgetError", err)
	}
	if b.Hint() == "" {
		t.Errorf("%v has no hint", b)
	}
	return b.Need
}

func demoModel(t *testing.T, o engine.Setup) *engine.Model {
	t.Helper()
	return load(t, testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", o)
}

func generate(t *testing.T, s *engine.Session, ids []token.ID, p engine.Params) (out []token.ID, text string, last engine.Token) {
	t.Helper()
	for tok, err := range s.Generate(t.Context(), ids, p) {
		if err != nil {
			t.Fatal(err)
		}
		out, text, last = append(out, tok.ID), text+tok.Text, tok
	}
	return out, text, last
}

func TestGenerate(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 96, Sessions: 4}))
	open := func(t *testing.T) *engine.Session {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	prompt := m.Encode("Once upon a time there was a", true)

	t.Run("length", func(t *testing.T) {
		ids, text, last := generate(t, open(t), prompt, engine.Params{MaxTokens: 5})
		if len(ids) != 5 || last.Stop != engine.StopLength || text == "" {
			t.Errorf("got %d tokens %q, stop %v", len(ids), text, last.Stop)
		}
	})
	t.Run("stop string", func(t *testing.T) {
		_, whole, _ := generate(t, open(t), prompt, engine.Params{MaxTokens: 12})
		stop := whole[4:9] // crosses token borders
		_, text, last := generate(t, open(t), prompt, engine.Params{MaxTokens: 12, Stop: []string{"never seen", stop}})
		if text != whole[:4] || last.Stop != engine.StopString {
			t.Errorf("got %q, stop %v; wanted %q, cut before %q", text, last.Stop, whole[:4], stop)
		}
	})
	t.Run("continues", func(t *testing.T) {
		long, _, _ := generate(t, open(t), prompt, engine.Params{MaxTokens: 10})
		s := open(t)
		a, _, _ := generate(t, s, prompt, engine.Params{MaxTokens: 4})
		b, _, _ := generate(t, s, nil, engine.Params{MaxTokens: 6})
		if !slices.Equal(long, slices.Concat(a, b)) {
			t.Errorf("in two parts %v %v, at once %v", a, b, long)
		}
	})
	t.Run("truncate", func(t *testing.T) {
		s := open(t)
		a, _, _ := generate(t, s, prompt, engine.Params{MaxTokens: 6})
		if err := s.Truncate(len(prompt)); err != nil {
			t.Fatal(err)
		}
		if err := s.Truncate(len(prompt) - 1); err != nil {
			t.Fatal(err)
		}
		b, _, _ := generate(t, s, prompt[len(prompt)-1:], engine.Params{MaxTokens: 6})
		if !slices.Equal(a, b) {
			t.Errorf("before %v, after truncation %v", a, b)
		}
		if err := s.Truncate(1000); err == nil {
			t.Error("truncating to more than there is was accepted")
		}
	})
	t.Run("reuse", func(t *testing.T) {
		s := open(t)
		a, _, _ := generate(t, s, prompt, engine.Params{MaxTokens: 6})
		for _, c := range []struct {
			ids  []token.ID
			rest int
		}{{slices.Concat(prompt, a[:3], []token.ID{5}), 1}, {prompt, 1}, {[]token.ID{999, 5}, 2}, {prompt, len(prompt)}} {
			rest, err := s.Reuse(c.ids)
			if err != nil || len(rest) != c.rest {
				t.Fatalf("%d ids have yet to run (error %v), wanted %d", len(rest), err, c.rest)
			}
			b, _, _ := generate(t, s, rest, engine.Params{MaxTokens: 6})
			if slices.Equal(c.ids, prompt) && !slices.Equal(a, b) {
				t.Errorf("at first %v, after reuse %v", a, b)
			}
		}
	})
	t.Run("context full", func(t *testing.T) {
		s := open(t)
		var err error
		n := 0
		for _, e := range s.Generate(t.Context(), prompt, engine.Params{IgnoreEOG: true}) {
			err = e
			n++
		}
		if !errors.Is(err, engine.ErrContextFull) || s.Len() != 96 || n != 96-len(prompt)+1 {
			t.Errorf("ended with %v at %d tokens after %d yields, wanted ErrContextFull at 96", err, s.Len(), n)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := open(t)
		n := 0
		var last error
		for _, err := range s.Generate(ctx, prompt, engine.Params{IgnoreEOG: true}) {
			if n++; n == 3 {
				cancel()
			}
			last = err
		}
		if !errors.Is(last, context.Canceled) || n != 4 {
			t.Errorf("ended with %v after %d yields", last, n)
		}
		if got, _, _ := generate(t, s, nil, engine.Params{MaxTokens: 2}); len(got) != 2 {
			t.Error("the session can't go on after a cancel")
		}
	})
	t.Run("sampled", func(t *testing.T) {
		p := engine.Params{Params: sample.Params{Temperature: 1.5, Seed: 7}, MaxTokens: 8, IgnoreEOG: true}
		a, _, _ := generate(t, open(t), prompt, p)
		b, _, _ := generate(t, open(t), prompt, p)
		p.Seed = 8
		c, _, _ := generate(t, open(t), prompt, p)
		if !slices.Equal(a, b) || slices.Equal(a, c) {
			t.Errorf("seed 7 twice: %v %v; seed 8: %v", a, b, c)
		}
	})
	t.Run("bad ids", func(t *testing.T) {
		if _, err := open(t).Forward(t.Context(), []token.ID{99999}); err == nil {
			t.Error("an id beyond the vocabulary was accepted")
		}
		if _, err := open(t).Forward(t.Context(), nil); err == nil {
			t.Error("no ids were accepted")
		}
	})
}

// TestSessions: sessions share a model without touching each other's cache, and there
// are no more of them than were planned.
func TestSessions(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 64, Sessions: 2}))
	prompt := m.Encode("The dog ran to the", true)
	a, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := generate(t, a, prompt, engine.Params{MaxTokens: 8})
	if err := a.Truncate(0); err != nil {
		t.Fatal(err)
	}
	b, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewSession(); budgetNeed(t, err) <= 0 {
		t.Error("a third session was refused without saying what it needs")
	}
	var gotA, gotB []token.ID
	other := m.Encode("A king lived in a castle with his daughter, and every day", true)
	nextA, nextB := prompt, other
	for range 8 { // interleaved
		ids, _, _ := generate(t, a, nextA, engine.Params{MaxTokens: 1, IgnoreEOG: true})
		gotA, nextA = append(gotA, ids...), nil
		ids, _, _ = generate(t, b, nextB, engine.Params{MaxTokens: 1, IgnoreEOG: true})
		gotB, nextB = append(gotB, ids...), nil
	}
	if !slices.Equal(gotA[:len(want)], want) {
		t.Errorf("interleaved %v, alone %v", gotA, want)
	}
	if slices.Equal(gotA, gotB) {
		t.Error("two prompts gave the same tokens")
	}
	b.Close()
	c, err := m.NewSession()
	if err != nil {
		t.Fatalf("a closed session's cache can't be used again: %v", err)
	}
	c.Close()
	c.Close()
	a.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    engine.Setup
		want string
	}{
		{"kv type", setup(engine.Options{KVType: "q4"}), "KVType"},
		{"negative context", setup(engine.Options{ContextLength: -1}), "ContextLength"},
		{"unknown feature", setup(engine.Options{Tuning: engine.Tuning{Disable: []string{"magic"}}}), "Tuning.Disable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := engine.LoadSetup(t.Context(), "nowhere.gguf", c.o)
			var o *engine.OptionError
			if !errors.As(err, &o) || o.Name != c.want {
				t.Errorf("found %v, wanted an OptionError about %s", err, c.want)
			}
		})
	}
}
