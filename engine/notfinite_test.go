package engine_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
	"leat/tools/testdata"
)

// TestNotFinite: where a model computes NaN or infinities, every way to its logits fails, and says after which position, whatever kernels and
// cache there are; a mask that bans all but one token is no such thing. The model goes on.
func TestNotFinite(t *testing.T) {
	for _, way := range []struct {
		name, file string
		o          engine.Setup
	}{
		{"as it is", "inf_norm", setup(engine.Options{})}, {"as it is", "nan_norm", setup(engine.Options{})},
		{"float32", "nan_norm", setup(engine.Options{KVType: "f32", Tuning: engine.Tuning{Disable: []string{"fp16", "int8"}}})},
		{"q8_0 cache", "inf_norm", setup(engine.Options{KVType: "q8_0", Tuning: engine.Tuning{Disable: []string{"fp16"}}})},
		{"q4_0 cache", "nan_norm", setup(engine.Options{KVType: "q4_0", Tuning: engine.Tuning{Disable: []string{"int8"}}})},
	} {
		t.Run(way.file+", "+way.name, func(t *testing.T) {
			path := filepath.Join(testdata.Dir(t), "faults", way.file+".gguf")
			if _, err := os.Stat(path); err != nil {
				t.Skip(err)
			}
			way.o.ContextLength = 64
			m, ok := loadKV(t, path, way.o)
			if !ok {
				t.Skip("heads that blocks can't hold")
			}
			for call, do := range map[string]func(s *engine.Session) error{
				"Generate, greedy": func(s *engine.Session) error { return lastError(t, s, engine.Params{MaxTokens: 3}) },
				"Generate, sampled": func(s *engine.Session) error {
					return lastError(t, s, engine.Params{Params: sample.Params{Temperature: 1}, MaxTokens: 3})
				},
				"Generate, masked": func(s *engine.Session) error { return lastError(t, s, engine.Params{Mask: onlyOne{7}, MaxTokens: 3}) },
				"Forward":          func(s *engine.Session) error { _, err := s.Forward(t.Context(), brokenPrompt); return err },
				"Next":             func(s *engine.Session) error { _, err := s.Next(t.Context(), brokenPrompt); return err },
				"Logits": func(s *engine.Session) (last error) {
					for _, err := range s.Logits(t.Context(), brokenPrompt) {
						last = err
					}
					return last
				},
			} {
				s, err := m.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				position := len(brokenPrompt) - 1
				if call == "Logits" {
					position = 0
				}
				var e *engine.NotFiniteError
				if err := do(s); !errors.As(err, &e) || e.Position != position || e.Hint() == "" {
					t.Errorf("%s: found error %v, wanted a NotFiniteError after position %d", call, err, position)
				}
				s.Close()
			}
		})
	}
}

var negativeInfinity = float32(math.Inf(-1))

var brokenPrompt = []token.ID{3, 4, 5}

func lastError(t *testing.T, s *engine.Session, p engine.Params) (last error) {
	t.Helper()
	for _, err := range s.Generate(t.Context(), brokenPrompt, p) {
		last = err
	}
	return last
}

// onlyOne is a mask that bans every token but one.
type onlyOne struct{ id int }

func (o onlyOne) Mask(logits []float32) {
	for i := range logits {
		if i != o.id {
			logits[i] = negativeInfinity
		}
	}
}

func (o onlyOne) Accept(int32) {}

// TestBans: a mask and a bias of minus infinity are the user's, and no error.
func TestBans(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 64}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bias := map[int32]float32{}
	for id := range int32(engine.DetailsOf(m).Hyper.VocabSize) {
		if id != 9 {
			bias[id] = negativeInfinity
		}
	}
	for name, p := range map[string]engine.Params{"mask": {Mask: onlyOne{9}}, "bias": {Params: sample.Params{LogitBias: bias}}} {
		p.MaxTokens, p.IgnoreEOG = 2, true
		if ids, _, _ := generate(t, s, brokenPrompt, p); len(ids) != 2 || ids[0] != 9 {
			t.Errorf("%s: got %v, wanted token 9 twice", name, ids)
		}
	}
}
