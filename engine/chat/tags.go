package chat

import (
	"regexp"
	"slices"
	"strings"
)

// tags are what a family of models writes around the parts of a reply.
type tags struct {
	spells      []string              // what the templates of this family spell, all of it; nil: close
	open, close string                // around thinking
	again       bool                  // thinking may begin again after words of the answer
	begin       string                // before the answer; "": nothing
	ends        []string              // after the answer
	parts       map[string]splitState // by tag, where each part has a header: what comes after the tag
	oneOf       bool                  // the template refuses a message with calls of tools, content and thinking
	known       bool                  // the template has these tags: they are no guess
}

// Tags where each part of a reply begins with a header that says what the part is:
//
//	<|start|>assistant<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
//	<|begin|>assistant<|think|>…<|end|><|begin|>assistant<|content|>…
//	<|start|>assistant to=self<|message|>…<|eom|><|start|>assistant to=user<|message|>…
var (
	gptOSSParts = map[string]splitState{
		"<|start|>": inHeader, channelTag: inHeader, "<|message|>": asHeaderSays, "<|end|>": inAnswer,
	}
	solarParts = map[string]splitState{
		"<|begin|>": inHeader, "<|think|>": inThinking, "<|tool_calls|>": inThinking, "<|content|>": inAnswer, "<|end|>": inAnswer,
	}
	museParts = map[string]splitState{
		"<|start|>": inHeader, "<|message|>": asHeaderSays, "<|eom|>": inAnswer, "<|eot|>": inAnswer,
	}
)

const channelTag = "<|channel|>"

// families are tried in this order; the last row is also the guess for a template that spells no tags.
var families = []tags{
	{spells: []string{channelTag, "analysis"}, parts: gptOSSParts, oneOf: true},
	{spells: []string{"<|begin|>assistant<|think|>", "<|content|>"}, parts: solarParts},
	{spells: []string{"assistant to=self<|message|>"}, parts: museParts},
	{
		spells: []string{"open_tag('think')", "'<|open|>'", "'<|close|>'"}, // Kimi K3 spells tags by macros
		open:   "<|open|>think<|sep|>", close: "<|close|>think<|sep|>",
		begin: "<|open|>response<|sep|>", ends: []string{"<|close|>response<|sep|>", "<|close|>message<|sep|>"},
	},
	{spells: []string{"'</think{}>'", "':opensource'"}, open: "<think:opensource>", close: "</think:opensource>"}, // Hy3
	{spells: []string{"[BEGIN FINAL RESPONSE]"}, open: "Here are my reasoning steps:", close: "[BEGIN FINAL RESPONSE]", ends: []string{"[END FINAL RESPONSE]"}},
	{spells: []string{"<think></think>", "<response></response>"}, open: "<think>", close: "</think>", begin: "<response>", ends: []string{"</response>"}},
	{open: "[THINK]", close: "[/THINK]"},
	{spells: []string{"<|END_THINKING|>", "<|START_TEXT|>"}, open: "<|START_THINKING|>", close: "<|END_THINKING|>", begin: "<|START_TEXT|>", ends: []string{"<|END_TEXT|>"}},
	{open: "<|START_THINKING|>", close: "<|END_THINKING|>", begin: "<|START_RESPONSE|>", ends: []string{"<|END_RESPONSE|>"}},
	{open: "<seed:think>", close: "</seed:think>"},
	{open: "<mm:think>", close: "</mm:think>"},
	{open: "<|inner_prefix|>", close: "<|inner_suffix|>"},
	{open: "<|channel>thought", close: "<channel|>", again: true}, // Gemma 4 adds empty thinking to some answers
	{open: "<think>", close: "</think>"},
}

// findTags tells a template's family.
func findTags(source string) tags {
	for _, t := range families {
		spells := t.spells
		if spells == nil {
			spells = []string{t.close}
		}
		if !slices.ContainsFunc(spells, func(s string) bool { return !strings.Contains(source, s) }) {
			t.known = true
			return t
		}
	}
	return families[len(families)-1]
}

// Marks around the spelling of a control token in a reply: bytes that no UTF-8 has, so no text can be taken for one.
const (
	controlBegin = "\xfe"
	controlEnd   = "\xff"
)

// tokenLike are the parts of a tag that may be tokens of their own.
var tokenLike = regexp.MustCompile(`<[^<>]*>|\[[^\[\]]*\]`)

func marked(control string) string { return controlBegin + control + controlEnd }

func unmarked(text string) string {
	if strings.IndexByte(text, controlBegin[0]) < 0 && strings.IndexByte(text, controlEnd[0]) < 0 {
		return text
	}
	return strings.NewReplacer(controlBegin, "", controlEnd, "").Replace(text)
}

// withoutControl leaves out control tokens.
func withoutControl(text string) string {
	for {
		before, rest, ok := strings.Cut(text, controlBegin)
		if !ok {
			return text
		}
		_, after, _ := strings.Cut(rest, controlEnd)
		text = before + after
	}
}

// forVocabulary marks what a model's vocabulary has as control tokens: only the token counts then, not its spelling in text. Where the
// template spells no tags, the vocabulary may have them.
func (t tags) forVocabulary(isControl func(spelling string) bool) tags {
	if isControl == nil {
		return t
	}
	if i := slices.IndexFunc(families, func(f tags) bool { return f.close != "" && isControl(f.close) }); i >= 0 && !t.known {
		t = families[i]
	}
	mark := func(tag string) string {
		return tokenLike.ReplaceAllStringFunc(tag, func(spelling string) string {
			if isControl(spelling) {
				return marked(spelling)
			}
			return spelling
		})
	}
	t.open, t.close, t.begin = mark(t.open), mark(t.close), mark(t.begin)
	t.ends = slices.Clone(t.ends)
	for i, end := range t.ends {
		t.ends[i] = mark(end)
	}
	if t.parts != nil {
		parts := make(map[string]splitState, len(t.parts))
		for tag, state := range t.parts {
			parts[mark(tag)] = state
		}
		t.parts = parts
	}
	return t
}
