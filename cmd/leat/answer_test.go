package main

import (
	"strings"
	"testing"

	"leat/engine/chat"
)

const thinkTemplate = `{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}
{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`

// play streams a reply of pieces through a splitter into out, as generate does.
func play(t *testing.T, split *chat.Splitter, out interface {
	show(thinking, text string) error
	finish()
}, pieces ...string) (thinking, answer string) {
	t.Helper()
	for _, p := range pieces {
		if err := out.show(split.Push(p, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.show(split.Flush()); err != nil {
		t.Fatal(err)
	}
	out.finish()
	return split.Reply()
}

func TestThinkingIsShownApart(t *testing.T) {
	tmpl, err := chat.New(thinkTemplate, chat.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name             string
		rendered         string
		pieces           []string
		thinking, answer string // as they are kept
		out, err         string // as a script sees them
	}{
		{"no thinking", "assistant:", []string{" Hi", " there \n"}, "", " Hi there \n", " Hi there \n", ""},
		{"thinking", "assistant:", []string{"<thi", "nk>\nhm", "</think>\n", "\nHi"}, "hm", "Hi", "Hi\n", "\nhm\n"},
		{"opened by the template", "assistant:<think>\n", []string{"hm", "</think>", "Hi\n"}, "hm", "Hi", "Hi\n", "hm\n"},
		{"no opening tag", "assistant:", []string{"hm</think>Hi"}, "hm", "Hi", "hmHi\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, talk strings.Builder
			thinking, answer := play(t, tmpl.NewSplitter(c.rendered), &plainOutput{out: &out, thinking: &talk}, c.pieces...)
			if thinking != c.thinking || answer != c.answer || out.String() != c.out || talk.String() != c.err {
				t.Errorf("got %q, %q, stdout %q, stderr %q; wanted %q, %q, %q, %q", thinking, answer, out.String(), talk.String(), c.thinking, c.answer, c.out, c.err)
			}
		})
	}
}

func TestContextErrorHasOneHint(t *testing.T) {
	var err error = &contextError{100, 64}
	if got := hintContext(err); got != err {
		t.Errorf("got %v: it has a hint of its own", got)
	}
	if got := hintContext(nil); got != nil {
		t.Errorf("got %v for no error", got)
	}
}
