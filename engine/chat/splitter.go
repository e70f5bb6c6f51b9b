package chat

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// tags are what a model writes around its thinking.
type tags struct {
	open, close string
	channels    bool                  // gpt-oss: every part of a reply says what it is
	parts       map[string]splitState // Solar Open: so does it, by one tag before each
	known       bool                  // the template has them
}

// solarParts: <|begin|>assistant<|think|>…<|end|><|begin|>assistant<|content|>…
var solarParts = map[string]splitState{
	"<|begin|>": inHeader, "<|think|>": inThinking, "<|tool_calls|>": inThinking, "<|content|>": inAnswer, endTag: inAnswer,
}

// Tags in use, the likelier first. A template that strips or opens thinking spells them.
var knownTags = []tags{
	{open: "<think>", close: "</think>"},
	{open: "[THINK]", close: "[/THINK]"},
	{open: "<|START_THINKING|>", close: "<|END_THINKING|>"},
	{open: "<seed:think>", close: "</seed:think>"},
	{open: "<think:opensource>", close: "</think:opensource>"},
	{open: "<mm:think>", close: "</mm:think>"},
	{open: "<|inner_prefix|>", close: "<|inner_suffix|>"},
	{open: "<|channel>thought", close: "<channel|>"},
}

func findTags(source string) tags {
	if strings.Contains(source, channelTag) && strings.Contains(source, "analysis") {
		return tags{channels: true, known: true}
	}
	if strings.Contains(source, "<|begin|>assistant<|think|>") && strings.Contains(source, "<|content|>") {
		return tags{parts: solarParts, known: true}
	}
	for _, t := range knownTags {
		if strings.Contains(source, t.close) {
			t.known = true
			return t
		}
	}
	return knownTags[0]
}

// headed tells that parts of a reply begin with what they are, not with an opening tag.
func (t *tags) headed() bool { return t.channels || t.parts != nil }

// Splitter tells a reply's thinking from its answer while it streams. Nothing is lost or
// reordered but the tags, and the headers of gpt-oss's channels.
type Splitter struct {
	tags     tags
	state    splitState
	held     string // what may be the beginning of a tag
	answered bool   // the answer has more than white space
	closable bool   // a closing tag may come though none was opened
	stray    bool
}

type splitState uint8

const (
	inAnswer splitState = iota
	inThinking
	inHeader // of a channel
)

// gpt-oss: <|start|>assistant<|channel|>analysis<|message|>…<|end|><|start|>…
const (
	startTag   = "<|start|>"
	channelTag = "<|channel|>"
	messageTag = "<|message|>"
	endTag     = "<|end|>"

	maxHeader = 256 // bytes: what is longer is none
)

// NewSplitter begins a reply to rendered, which may have opened the thinking already.
func (t *Template) NewSplitter(rendered string) *Splitter {
	s := &Splitter{tags: t.tags}
	end := strings.TrimRightFunc(rendered, unicode.IsSpace)
	if t.tags.headed() {
		return s
	}
	switch {
	case strings.HasSuffix(end, t.tags.open):
		s.state = inThinking
	case t.tags.known && !strings.HasSuffix(end, t.tags.close):
		s.closable = true
	}
	return s
}

// Push takes the next piece of the reply and returns what is certain of both parts.
func (s *Splitter) Push(text string) (thinking, answer string) {
	var think, ans strings.Builder
	text = s.held + text
	for {
		i, tag := s.find(text)
		if tag == "" {
			keep := s.partial(text)
			if s.state == inHeader && keep > maxHeader {
				s.state, keep = inAnswer, 0
			}
			s.give(text[:len(text)-keep], &think, &ans)
			s.held = text[len(text)-keep:]
			return think.String(), ans.String()
		}
		s.give(text[:i], &think, &ans)
		s.cross(tag, text[:i])
		text = text[i+len(tag):]
	}
}

// Flush ends the reply: what was held back as the beginning of a tag is none.
func (s *Splitter) Flush() (thinking, answer string) {
	var think, ans strings.Builder
	s.give(s.held, &think, &ans)
	s.held = ""
	return think.String(), ans.String()
}

// IsTag tells whether text spells a tag. Where tags are control tokens, a reply's text
// has none: whoever streams pushes their spelling in its place.
func (s *Splitter) IsTag(text string) bool {
	if s.tags.channels {
		return text == startTag || text == channelTag || text == messageTag || text == endTag
	}
	if s.tags.parts != nil {
		_, ok := s.tags.parts[text]
		return ok
	}
	return text == s.tags.open || text == s.tags.close
}

// Stray tells that a closing tag came though none had been opened, so what went before
// it as answer was thinking; some models leave the opening tag out.
func (s *Splitter) Stray() bool { return s.stray }

func (s *Splitter) give(text string, thinking, answer *strings.Builder) {
	switch s.state {
	case inThinking:
		thinking.WriteString(text)
	case inAnswer:
		answer.WriteString(text)
		s.answered = s.answered || strings.TrimSpace(text) != ""
	}
}

// live are the tags that mean something here. A model may well write of tags in its
// answer, so there only one before all else opens.
func (s *Splitter) live() []string {
	if s.tags.channels {
		if s.state == inHeader {
			return []string{messageTag}
		}
		return []string{channelTag, endTag, startTag}
	}
	if s.tags.parts != nil {
		return slices.Collect(maps.Keys(s.tags.parts))
	}
	if s.state == inThinking {
		return []string{s.tags.close}
	}
	var live []string
	if !s.answered {
		live = append(live, s.tags.open)
	}
	if s.closable {
		live = append(live, s.tags.close)
	}
	return live
}

// find returns the first live tag in text; an opening tag counts after white space only.
func (s *Splitter) find(text string) (at int, tag string) {
	at = len(text)
	for _, t := range s.live() {
		i := strings.Index(text, t)
		if i < 0 || i >= at {
			continue
		}
		if t == s.tags.open && strings.TrimSpace(text[:i]) != "" {
			continue
		}
		at, tag = i, t
	}
	return at, tag
}

// partial returns how many bytes at the end may be the beginning of a live tag.
func (s *Splitter) partial(text string) int {
	longest := 0
	for _, t := range s.live() {
		for n := min(len(t)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, t[:n]) && (t != s.tags.open || strings.TrimSpace(text[:len(text)-n]) == "") {
				longest = n
			}
		}
	}
	if s.state == inHeader { // all of a header is read at once, when it's whole
		longest = len(text)
	}
	return longest
}

func (s *Splitter) cross(tag, before string) {
	if state, ok := s.tags.parts[tag]; ok {
		s.state = state
		return
	}
	switch tag {
	case s.tags.open:
		s.state, s.closable = inThinking, false
	case s.tags.close:
		s.stray = s.stray || s.state == inAnswer
		s.state, s.closable = inAnswer, false
	case channelTag, startTag:
		s.state = inHeader
	case endTag:
		s.state = inAnswer
	case messageTag:
		s.state = inThinking
		if i := strings.LastIndex(before, channelTag); i >= 0 {
			before = before[i+len(channelTag):]
		}
		if name := strings.TrimSpace(before); name == "" || strings.HasPrefix(name, "final") || name == "assistant" {
			s.state = inAnswer
		}
	}
}

// Split is for a whole reply at once, without the white space around its parts.
func (t *Template) Split(rendered, reply string) (thinking, answer string) {
	s := t.NewSplitter(rendered)
	if i := strings.Index(reply, t.tags.close); s.closable && i >= 0 && !strings.HasPrefix(strings.TrimSpace(reply), t.tags.open) {
		return strings.TrimSpace(reply[:i]), strings.TrimSpace(reply[i+len(t.tags.close):])
	}
	thinking, answer = s.Push(reply)
	restThinking, restAnswer := s.Flush()
	return strings.TrimSpace(thinking + restThinking), strings.TrimSpace(answer + restAnswer)
}

// SplitReply is Split for a reply that becomes a message of the next prompt: one without thinking stays as it is, white space and all, so
// that the tokens that a session holds fit that prompt.
func (t *Template) SplitReply(rendered, reply string) (thinking, answer string) {
	if thinking, answer = t.Split(rendered, reply); thinking == "" && strings.TrimSpace(reply) == answer {
		return "", reply
	}
	return thinking, answer
}
