package engine_test

import (
	"math"
	"testing"

	"leat/engine"
	"leat/engine/token"
)

// script is a mask that allows one token after the other.
type script struct {
	ids []token.ID
	at  int
}

func (s *script) Mask(logits []float32) {
	for i := range logits {
		if token.ID(i) != s.ids[min(s.at, len(s.ids)-1)] {
			logits[i] = float32(math.Inf(-1))
		}
	}
}

func (s *script) Accept(token.ID) { s.at++ }

// A control token that ends nothing is told by its spelling, after the text that was held back until then; none is among the text.
func TestControlTokens(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 64}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start, ok := m.Tokenizer().Find("<|im_start|>")
	end, also := m.Tokenizer().Find("<|im_end|>")
	if !ok || !also {
		t.Fatal("the vocabulary has no ChatML")
	}
	ids := m.Encode("The end", false)
	ids = append(append(append(ids, start), m.Encode("ing", false)...), end)
	text, controls := "", ""
	for tok, err := range s.Generate(t.Context(), m.Encode("Once", true), engine.Params{Mask: &script{ids: ids}, Stop: []string{"ending"}}) {
		if err != nil {
			t.Fatal(err)
		}
		text += tok.Text
		if controls += tok.Control; tok.Control != "" && text != "The end" {
			t.Errorf("before the control token came %q, wanted all text", text)
		}
		if tok.Stop != engine.StopNone && tok.Stop != engine.StopEOG {
			t.Errorf("stopped by a %v", tok.Stop)
		}
	}
	if text != "The ending" || controls != "<|im_start|>" {
		t.Errorf("got text %q and control tokens %q", text, controls)
	}
}
