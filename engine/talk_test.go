package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/chat"
)

// say runs one turn and returns what was yielded.
func say(t *testing.T, c *engine.Chat, question string) (text string, last engine.Piece) {
	t.Helper()
	for p, err := range c.Say(t.Context(), question) {
		if err != nil {
			t.Fatal(err)
		}
		text, last = text+p.Text, p
	}
	return text, last
}

// A conversation answers as its messages do when they are encoded whole, and runs only what is new.
func TestChat(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 256, Sessions: 2}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := engine.NewChat(s, engine.Params{MaxTokens: 12})
	first, last := say(t, c, "Tell me a story about a dog and a ball.")
	if last.Token.Stop != engine.StopLength || first == "" || len(c.Messages) != 2 || c.Messages[1].Content != first {
		t.Fatalf("the first turn ended with %v and left %+v", last.Token.Stop, c.Messages)
	}
	held, before := s.Len(), m.Stats().Rows
	second, _ := say(t, c, "What happened then?")
	ids, err := m.EncodeChat(t.Context(), c.Messages[:3], chat.RenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What is new of the prompt, and all tokens of the answer but its last one.
	if ran, most := m.Stats().Rows-before, int64(len(ids)-held+1+11); ran > most {
		t.Errorf("the second turn ran %d tokens, wanted at most %d of %d", ran, most, len(ids))
	}
	fresh, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, want, _ := generate(t, fresh, ids, engine.Params{MaxTokens: 12}); second != want {
		t.Errorf("the second answer is %q, of the whole prompt %q", second, want)
	}
}

// What was yielded of an answer that is stopped stays; a question that could not be asked is taken back.
func TestChatStopped(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 64}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	c := engine.NewChat(s, engine.Params{MaxTokens: 12}, chat.Message{Role: "system", Content: "Be kind."})
	text := ""
	for p, err := range c.Say(t.Context(), "Tell me a story.") {
		if err != nil {
			t.Fatal(err)
		}
		if text += p.Text; strings.Count(text, " ") > 2 {
			break
		}
	}
	if len(c.Messages) != 3 || c.Messages[2].Content != text || text == "" {
		t.Errorf("stopped after %q: %+v", text, c.Messages)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx      context.Context
		question string
		want     error
	}{
		"canceled": {canceled, "And then?", context.Canceled},
		"too long": {t.Context(), strings.Repeat("And then? ", 60), engine.ErrContextFull},
	} {
		var last error
		for _, err := range c.Say(tt.ctx, tt.question) {
			last = err
		}
		if !errors.Is(last, tt.want) || len(c.Messages) != 3 {
			t.Errorf("%s: ended with %v, wanted %v, and left %d messages", name, last, tt.want, len(c.Messages))
		}
	}
	s.Close()
	for _, err := range c.Answer(t.Context()) {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("in a closed session: %v", err)
		}
	}
}
