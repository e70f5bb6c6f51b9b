package chat

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Templates that say as much of thinking as the real ones do.
const (
	thinks   = `{{ messages[0].content.split('</think>')[-1] }}`
	mistral  = `[THINK]{{ x }}[/THINK]`
	channels = `<|channel|>analysis<|message|>`
	solar    = `<|begin|>assistant<|think|>{{ x }}<|end|><|begin|>assistant<|content|>`
	none     = `{{ messages }}`
)

func TestSplitter(t *testing.T) {
	for _, c := range []struct {
		name, source, rendered, reply, thinking, answer string
		stray                                           bool
	}{
		{"none", none, "", "Hello", "", "Hello", false},
		{"both", thinks, "assistant\n", "<think>\nhm\n</think>\n\nHello", "\nhm\n", "\n\nHello", false},
		{"after white space", thinks, "", "\n <think>hm</think>Hello", "hm", "\n Hello", false},
		{"unknown to the template", none, "", "<think>hm</think>Hello", "hm", "Hello", false},
		{"opened by the template", thinks, "assistant\n<think>\n", "hm</think>Hello", "hm", "Hello", false},
		{"closed by the template", thinks, "assistant\n<think>\n\n</think>\n\n", "Hello </think> there", "", "Hello </think> there", false},
		{"never closed", thinks, "assistant\n<think>\n", "hm, hm", "hm, hm", "", false},
		{"never opened", thinks, "assistant\n", "hm</think>Hello", "", "hmHello", true},
		{"never opened, unknown", none, "assistant\n", "hm</think>Hello", "", "hm</think>Hello", false},
		{"an answer about tags", thinks, "assistant\n", "Write <think> first", "", "Write <think> first", false},
		{"thinking about tags", thinks, "assistant\n<think>", "a <think> b</think>c<think>d", "a <think> b", "c<think>d", false},
		{"again at once", thinks, "", "<think>a</think>\n<think>b</think>c", "ab", "\nc", false},
		{"cut off in a tag", thinks, "<think>", "hm</thi", "hm</thi", "", false},
		{"almost a tag", thinks, "", "<thin ice", "", "<thin ice", false},
		{"other tags", mistral, "", "[THINK]hm[/THINK]Hello", "hm", "Hello", false},
		{"channels", channels, "<|start|>assistant", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello", "hm", "Hello", false},
		{"commentary", channels, "<|start|>assistant", "<|channel|>commentary to=f <|constrain|>json<|message|>{}", "{}", "", false},
		{"commentary to whom before its channel", channels, "<|start|>assistant", " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}", "{}", "", false},
		{"commentary for the user", channels, "<|start|>assistant", "<|channel|>commentary<|message|>I look it up.", "", "I look it up.", false},
		{"channels, cut off in a header", channels, "<|start|>assistant", "<|channel|>anal", "", "", false},
		{"channels, cut off in the next header", channels, "<|start|>assistant", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant", "hm", "", false},
		{"channels, the answer's begun by the prompt", channels, "<|start|>assistant<|channel|>final<|message|>", "Hello<|end|>", "", "Hello", false},
		{"channels left out, of tags", channels, "<|start|>assistant", "Not <|a tag|>", "", "Not <|a tag|>", false},
		{"channels left out, some lines", channels, "<|start|>assistant\n", "Hello\n<|message|> there", "", "Hello\n<|message|> there", false},
		{"channels left out", channels, "<|start|>assistant", "Hello", "", "Hello", false},
		{"parts", solar, "<|begin|>assistant", "<|think|>hm <|<|end|><|begin|>assistant<|content|>Hello", "hm <|", "Hello", false},
		{"parts, with a tool", solar, "<|begin|>assistant", "<|content|>Hello<|end|><|begin|>assistant<|tool_calls|>f{}", "f{}", "Hello", false},
		{"parts, no thinking", solar, "<|begin|>assistant<|think|><|end|><|begin|>assistant", "<|content|>Hello <think>", "", "Hello <think>", false},
		{"parts left out", solar, "<|begin|>assistant", "Hello", "", "Hello", false},
		{"a part's header without end", solar, "", "<|begin|>" + strings.Repeat("x", 300), "", strings.Repeat("x", 300), false},
		{"a header without end", channels, "", "<|channel|>" + strings.Repeat("x", 300), "", strings.Repeat("x", 300), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(50) {
				s := splitting(c.source, nil).NewSplitter(c.rendered)
				thinking, answer := pushed(s, c.reply, rand.New(rand.NewPCG(seed, 0)))
				if thinking != c.thinking || answer != c.answer || s.Stray() != c.stray {
					t.Fatalf("seed %d: got thinking %q, answer %q, stray %v; wanted %q, %q, %v", seed, thinking, answer, s.Stray(), c.thinking, c.answer, c.stray)
				}
			}
		})
	}
}

// splitting is a template of which only the tags are there: some of the sources are no templates.
func splitting(source string, control []string) *Template {
	return &Template{tags: findTags(source).forVocabulary(func(spelling string) bool { return slices.Contains(control, spelling) })}
}

// pushed gives a reply in pieces of any size; what stands between ⟦ and ⟧ are control tokens.
func pushed(s *Splitter, reply string, rng *rand.Rand) (thinking, answer string) {
	push := func(text, control string) {
		th, an := s.Push(text, control)
		thinking, answer = thinking+th, answer+an
	}
	for reply != "" {
		text, rest, control := strings.Cut(reply, "⟦")
		for text != "" {
			n := 1 + rng.IntN(min(len(text), 12))
			push(text[:n], "")
			text = text[n:]
		}
		if !control {
			break
		}
		spelling, rest, _ := strings.Cut(rest, "⟧")
		push("", spelling)
		reply = rest
	}
	th, an := s.Flush()
	return thinking + th, answer + an
}

// TestSplitterKeeps pushes random mixtures of text and tags: however they are cut, both
// parts are the same, and between them is all of the reply but tags, in order.
func TestSplitterKeeps(t *testing.T) {
	parts := []string{"<think>", "</think>", "<thi", "nk>", "</", "<", ">", " ", "\n", "a", "é", "think", "</think"}
	tmpl := splitting(thinks, nil)
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		reply, rendered := b.String(), []string{"", "<think>\n", "<think></think>"}[rng.IntN(3)]
		whole := tmpl.NewSplitter(rendered)
		thinking, answer := whole.Push(reply, "")
		th, an := whole.Flush()
		thinking, answer = thinking+th, answer+an

		cutThinking, cutAnswer := pushed(tmpl.NewSplitter(rendered), reply, rng)
		if cutThinking != thinking || cutAnswer != answer {
			t.Fatalf("seed %d: %q whole gives %q and %q, cut %q and %q", seed, reply, thinking, answer, cutThinking, cutAnswer)
		}
		inOrder := tmpl.NewSplitter(rendered)
		var all strings.Builder
		for i := range len(reply) {
			th, an := inOrder.Push(reply[i:i+1], "")
			all.WriteString(th + an)
		}
		th, an = inOrder.Flush()
		all.WriteString(th + an)
		if !without(reply, all.String(), "<think>", "</think>") {
			t.Fatalf("seed %d: %q gives %q", seed, reply, all.String())
		}
	}
}

// without tells whether got is whole with some of these tags taken out.
func without(whole, got string, tags ...string) bool {
	if whole == "" {
		return got == ""
	}
	for _, tag := range tags {
		if rest, ok := strings.CutPrefix(whole, tag); ok && without(rest, got, tags...) {
			return true
		}
	}
	return got != "" && got[0] == whole[0] && without(whole[1:], got[1:], tags...)
}

func TestReply(t *testing.T) {
	for _, c := range []struct{ source, rendered, reply, thinking, answer string }{
		{thinks, "", "<think>\nhm\n</think>\n\nHello\n", "hm", "Hello"},
		{thinks, "<think>\n", "hm\n</think>\n\nHello", "hm", "Hello"},
		{thinks, "", "hm\n</think>\n\nHello", "hm", "Hello"},
		{thinks, "", "<think>\n\n</think>\n\nHello", "", "Hello"},
		{thinks, "", "Hello</th", "", "Hello</th"},
		{none, "", " Hello ", "", " Hello "},
		{none, "", " Hello⟦<|x|>⟧ ", "", " Hello "},
		{channels, "", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello", "hm", "Hello"},
		{channels, "<|start|>assistant", "Hello ", "", "Hello "},
	} {
		s := splitting(c.source, nil).NewSplitter(c.rendered)
		pushed(s, c.reply, rand.New(rand.NewPCG(1, 0)))
		if thinking, answer := s.Reply(); thinking != c.thinking || answer != c.answer {
			t.Errorf("%q: got %q and %q, wanted %q and %q", c.reply, thinking, answer, c.thinking, c.answer)
		}
	}
	var s Splitter
	if thinking, text := s.Push("<think> a ", "<|x|>"); thinking != "" || text != "<think> a " {
		t.Errorf("without a template: got %q and %q", thinking, text)
	}
	if thinking, answer := s.Reply(); thinking != "" || answer != "<think> a " {
		t.Errorf("without a template the reply is %q and %q", thinking, answer)
	}
}
