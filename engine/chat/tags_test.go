package chat

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/testdata"
)

// TestControlTags has each family's tags as control tokens: they split the reply, show nowhere, and their spelling in text is text.
func TestControlTags(t *testing.T) {
	const (
		gemma    = `{{ x.split('<channel|>') }}`
		cohere   = `<|START_THINKING|>{{ x }}<|END_THINKING|><|START_RESPONSE|>`
		cohere2  = `<|START_THINKING|>{{ x }}<|END_THINKING|><|START_TEXT|>`
		apertus  = `{% set a, b = '<|inner_prefix|>', '<|inner_suffix|>' %}`
		kimi     = `{{ '<|open|>' + tag }}{{ '<|close|>' + tag }}{{ open_tag('think') }}`
		muse     = `<|start|>assistant to=self<|message|>`
		hy       = `{% set h = ':opensource' %}{{ '</think{}>'.format(h) }}`
		apriel   = `[BEGIN FINAL RESPONSE]`
		granite  = `between <think></think> and <response></response>`
		steering = "<|start|> <|channel|> <|message|> <|end|> <|constrain|> <|begin|> <|think|> <|content|> <|eom|> <|eot|> [THINK] [/THINK] <|START_THINKING|> <|END_THINKING|> " +
			"<|START_RESPONSE|> <|END_RESPONSE|> <|START_TEXT|> <|END_TEXT|> <|inner_prefix|> <|inner_suffix|> <|open|> <|close|> <|sep|> <|channel> <channel|> <|x|>"
	)
	for _, c := range []struct{ name, source, rendered, reply, thinking, answer string }{
		{"Mistral", mistral, "[/INST]", "⟦[THINK]⟧hm⟦[/THINK]⟧Hello", "hm", "Hello"},
		{"Mistral, of tags", mistral, "[/INST]", "⟦[THINK]⟧[THINK] is [/THINK]⟦[/THINK]⟧[THINK] a [/THINK]", "[THINK] is [/THINK]", "[THINK] a [/THINK]"},
		{"Mistral, thinks again", mistral, "[/INST]", "⟦[THINK]⟧hm⟦[/THINK]⟧Hello⟦[THINK]⟧ so⟦[/THINK]⟧!", "hm so", "Hello!"},
		{"Mistral, twice opened", mistral, "[/INST]", "⟦[THINK]⟧h⟦[THINK]⟧m⟦[/THINK]⟧Hello⟦[/THINK]⟧", "hm", "Hello"},
		{"Mistral, cut off", mistral, "[/INST]", "⟦[THINK]⟧hm [/THI", "hm [/THI", ""},
		{"Mistral, calls a tool", mistral, "[/INST]", "⟦[THINK]⟧hm⟦[/THINK]⟧⟦<|x|>⟧f{}", "hm", "f{}"},
		{"gpt-oss", channels, "<|start|>assistant", "⟦<|channel|>⟧analysis⟦<|message|>⟧hm <|end|>⟦<|end|>⟧⟦<|start|>⟧assistant⟦<|channel|>⟧final⟦<|message|>⟧Hello", "hm <|end|>", "Hello"},
		{"gpt-oss, calls a tool", channels, "<|start|>assistant", "⟦<|channel|>⟧commentary to=functions.f ⟦<|constrain|>⟧json⟦<|message|>⟧{}", "{}", ""},
		{"gpt-oss, calls a tool at once", channels, "<|start|>assistant", " to=functions.f⟦<|channel|>⟧commentary json⟦<|message|>⟧{}", "{}", ""},
		{"gpt-oss, preamble", channels, "<|start|>assistant", "⟦<|channel|>⟧commentary⟦<|message|>⟧I look.⟦<|end|>⟧", "", "I look."},
		{"gpt-oss, no channels", channels, "<|start|>assistant", "Hello", "", "Hello"},
		{"Solar Open", solar, "<|begin|>assistant", "⟦<|think|>⟧hm⟦<|end|>⟧⟦<|begin|>⟧assistant⟦<|content|>⟧Hello", "hm", "Hello"},
		{"Muse", muse, "<|start|>assistant", " to=self⟦<|message|>⟧hm⟦<|eom|>⟧⟦<|start|>⟧assistant to=user⟦<|message|>⟧Hello", "hm", "Hello"},
		{"Muse, calls a tool", muse, "<|start|>assistant", " to=f⟦<|message|>⟧<x/>⟦<|eom|>⟧", "<x/>", ""},
		{"Gemma 4", gemma, "<|turn>model\n", "⟦<|channel>⟧thought\nhm\n⟦<channel|>⟧Hello", "\nhm\n", "Hello"},
		{"Gemma 4, thinks nothing at the end", gemma, "<|channel>thought\n<channel|>", "Hello⟦<|channel>⟧thought\n⟦<channel|>⟧", "\n", "Hello"},
		{"Gemma 4, an old file's other way", gemma, "<|turn>model\n", "⟦<|channel>⟧th", "", "th"},
		{"Command R", cohere, "<|CHATBOT_TOKEN|>", "⟦<|START_THINKING|>⟧hm⟦<|END_THINKING|>⟧⟦<|START_RESPONSE|>⟧Hello⟦<|END_RESPONSE|>⟧", "hm", "Hello"},
		{"Command A", cohere2, "<|START_THINKING|>", "hm⟦<|END_THINKING|>⟧⟦<|START_TEXT|>⟧Hello⟦<|END_TEXT|>⟧", "hm", "Hello"},
		{"Apertus", apertus, "", "⟦<|inner_prefix|>⟧hm⟦<|inner_suffix|>⟧Hello", "hm", "Hello"},
		{"Kimi K3", kimi, "<|open|>think<|sep|>", "hm⟦<|close|>⟧think⟦<|sep|>⟧⟦<|open|>⟧response⟦<|sep|>⟧Hello⟦<|close|>⟧response⟦<|sep|>⟧⟦<|close|>⟧message⟦<|sep|>⟧", "hm", "Hello"},
		{"Kimi K3, no thinking", kimi, "<|open|>response<|sep|>", "Hello⟦<|close|>⟧response⟦<|sep|>⟧", "", "Hello"},
		{"Hy3", hy, "<think:opensource>", "hm</think:opensource>Hello", "hm", "Hello"},
		{"Apriel", apriel, "Here are my reasoning steps:\n", "hm\n[BEGIN FINAL RESPONSE]\nHello\n[END FINAL RESPONSE]", "hm\n", "\nHello\n"},
		{"Apriel, opens", apriel, "<|assistant|>\n", "Here are my reasoning steps:\nhm\n[BEGIN FINAL RESPONSE]Hello", "\nhm\n", "Hello"},
		{"Granite", granite, "", "<think>hm</think>\n<response>Hello</response>", "hm", "\nHello"},
		{"Granite, of tags", granite, "", "Write <response> and </response>", "", "Write <response> and </response>"},
		{"no tags, but in the vocabulary", none, "[/INST]", "⟦[THINK]⟧hm⟦[/THINK]⟧Hello", "hm", "Hello"},
		{"no tags", none, "", "⟦<|x|>⟧Hel⟦<|x|>⟧lo", "", "Hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(50) {
				s := splitting(c.source, strings.Fields(steering)).NewSplitter(c.rendered)
				thinking, answer := pushed(s, c.reply, rand.New(rand.NewPCG(seed, 0)))
				if thinking != c.thinking || answer != c.answer {
					t.Fatalf("seed %d: got thinking %q, answer %q; wanted %q, %q", seed, thinking, answer, c.thinking, c.answer)
				}
			}
			// The same model in a file that has them as text.
			plain := strings.NewReplacer("⟦", "", "⟧", "")
			if s := splitting(c.source, nil).NewSplitter(c.rendered); !strings.Contains(c.name, ", ") && c.name != "no tags" && c.name != "gpt-oss" {
				thinking, answer := pushed(s, plain.Replace(c.reply), rand.New(rand.NewPCG(1, 0)))
				if thinking != c.thinking || answer != c.answer {
					t.Errorf("as text: got thinking %q, answer %q; wanted %q, %q", thinking, answer, c.thinking, c.answer)
				}
			}
		})
	}
}

// TestTagsOfVendors holds the tags of each published template that renders thinking against what it renders: all that stands between
// the prompt and the thinking, and between the thinking and the answer, are tags.
func TestTagsOfVendors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t), "vendor", "templates", "*.jinja"))
	if err != nil || len(files) < 70 {
		t.Fatalf("found %d templates, wanted 70 (%v)", len(files), err)
	}
	conversation := []Message{{Role: "user", Content: "Why?"}, {Role: "assistant", Content: "AnswerAnswer", Thinking: "ThoughtThought"}}
	args := map[string]any{"enable_thinking": true, "thinking": true, "preserve_thinking": true, "keep_past_thinking": true, "reasoning": true}
	now := func() time.Time { return time.Date(2025, 7, 10, 0, 0, 0, 0, time.UTC) }
	checked := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := New(string(source), Vocabulary{})
		if err != nil {
			t.Fatal(err)
		}
		whole, err := tmpl.Render(t.Context(), conversation, RenderOptions{NoGenerationPrompt: true, Args: args, Now: now})
		if err != nil || !strings.Contains(whole, "ThoughtThought") {
			continue // it leaves old thinking out, or refuses the conversation
		}
		prompt, err := tmpl.Render(t.Context(), conversation[:1], RenderOptions{Args: args, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		// A template may begin the turn with more than it does in history: what both share is the prompt.
		shared := 0
		for shared < min(len(prompt), len(whole)) && prompt[shared] == whole[shared] {
			shared++
		}
		name := filepath.Base(file)
		s := tmpl.NewSplitter(whole[:shared])
		s.Push(whole[shared:], "")
		thinking, answer := s.Reply()
		if i := strings.IndexAny(answer, "<["); i >= 0 { // the end of the turn
			answer = strings.TrimSpace(answer[:i])
		}
		if thinking != "ThoughtThought" || answer != "AnswerAnswer" {
			t.Errorf("%s: %q is split into %q and %q", name, whole[shared:], thinking, answer)
		}
		checked++
	}
	if checked < 24 {
		t.Errorf("%d templates render thinking, wanted 24", checked)
	}
	t.Logf("%d of %d templates render thinking", checked, len(files))
}
