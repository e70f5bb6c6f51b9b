package chat

import (
	"strings"
	"unicode"
)

// Splitter tells a reply's thinking from its answer while it streams. Nothing is lost or reordered but tags, headers of a reply's parts,
// and control tokens. The zero value takes everything for the answer.
type Splitter struct {
	tags     tags
	state    splitState
	header   string // how the part's header begins: in the prompt, or with a tag of the reply
	held     string // what may be the beginning of a tag
	headed   bool   // a tag of the reply, not the prompt, began the part's header
	answered bool   // the answer has more than white space
	begun    bool   // the tag before the answer came, or the family has none
	closable bool   // a closing tag may come though none was opened
	stray    bool   // it did
	tagged   bool   // a tag came, so the answer is not the whole reply

	thinking, answer strings.Builder // of the whole reply
}

type splitState uint8

const (
	inAnswer splitState = iota
	inThinking
	inHeader
	asHeaderSays // what a header says comes next: one of the above
)

const maxHeader = 256 // bytes: what is longer is none

// NewSplitter begins a reply to rendered, which may have opened the thinking already.
func (t *Template) NewSplitter(rendered string) *Splitter {
	s := &Splitter{tags: t.tags, begun: t.tags.begin == ""}
	if t.tags.parts != nil {
		s.enterPart(rendered)
		return s
	}
	end := strings.TrimRightFunc(rendered, unicode.IsSpace)
	switch ends := func(tag string) bool { return tag != "" && strings.HasSuffix(end, unmarked(tag)) }; {
	case ends(t.tags.open):
		s.state = inThinking
	case ends(t.tags.begin):
		s.begun = true
	case t.tags.known && !ends(t.tags.close):
		s.closable = true
	}
	return s
}

// enterPart reads the part of a reply that the prompt begins, up to where the reply goes on.
func (s *Splitter) enterPart(rendered string) {
	last, pairs := -1, make([]string, 0, 2*len(s.tags.parts))
	for tag, state := range s.tags.parts {
		pairs = append(pairs, unmarked(tag), tag)
		if state == inHeader {
			last = max(last, strings.LastIndex(rendered, unmarked(tag)))
		}
	}
	if last < 0 {
		return
	}
	s.push(strings.NewReplacer(pairs...).Replace(rendered[last:]))
	s.header += strings.TrimSpace(s.held)
	s.held, s.headed, s.answered, s.tagged = "", false, false, false
	s.thinking.Reset()
	s.answer.Reset()
}

// Push takes the next piece of the reply, its text and then the spelling of a control token, and returns what is certain of both parts.
// Either may be "". Text is UTF-8.
func (s *Splitter) Push(text, control string) (thinking, answer string) {
	text = unmarked(text)
	if control != "" {
		text += marked(control)
	}
	return s.push(text)
}

func (s *Splitter) push(text string) (thinking, answer string) {
	var think, ans strings.Builder
	text = s.held + text
	for {
		end, tag := s.find(text)
		if tag == "" {
			end = len(text) - s.partial(text)
		}
		if s.state == inHeader && !isHeader(text[:end]) {
			s.state = inAnswer
			continue
		}
		if tag == "" {
			if s.state == inHeader { // read at once, when it is whole
				end = 0
			}
			s.give(text[:end], &think, &ans)
			s.held = text[end:]
			return think.String(), ans.String()
		}
		s.give(text[:end], &think, &ans)
		s.cross(tag, text[:end])
		text = text[end+len(tag):]
	}
}

// Flush ends the reply: what was held back as the beginning of a tag is none. A header that a tag began is dropped, as its part did not come.
func (s *Splitter) Flush() (thinking, answer string) {
	var think, ans strings.Builder
	if s.state == inHeader && !s.headed && !s.hasTag(s.held) {
		s.state = inAnswer
	}
	s.give(s.held, &think, &ans)
	s.held = ""
	return think.String(), ans.String()
}

// hasTag tells whether text, which may be a header, has a tag and so is one.
func (s *Splitter) hasTag(text string) bool {
	for tag := range s.tags.parts {
		if strings.Contains(text, tag) {
			return true
		}
	}
	return false
}

// Reply ends the reply and returns both parts as a message of the next prompt has them: without the white space around them. A reply
// without tags stays as it is, white space and all, so that the tokens that a session holds fit that prompt.
func (s *Splitter) Reply() (thinking, answer string) {
	s.Flush()
	if !s.tagged && s.state == inAnswer {
		return "", s.answer.String()
	}
	return strings.TrimSpace(s.thinking.String()), strings.TrimSpace(s.answer.String())
}

// Stray tells that a closing tag came though none had been opened, so what went before
// it as answer was thinking; some models leave the opening tag out.
func (s *Splitter) Stray() bool { return s.stray }

func (s *Splitter) give(text string, thinking, answer *strings.Builder) {
	text = withoutControl(text)
	switch s.state {
	case inThinking:
		thinking.WriteString(text)
		s.thinking.WriteString(text)
	case inAnswer:
		answer.WriteString(text)
		s.answer.WriteString(text)
		s.answered = s.answered || strings.TrimSpace(text) != ""
	}
}

// live are the tags that mean something here.
func (s *Splitter) live() []string {
	var live []string
	switch {
	case s.tags.parts != nil:
		for tag, to := range s.tags.parts {
			if s.state == inHeader && to != inHeader || s.state != inHeader && to != asHeaderSays {
				live = append(live, tag)
			}
		}
		return live
	case s.state == inThinking:
		return []string{s.tags.close}
	case s.begun:
		live = append(live, s.tags.ends...)
	case s.tags.begin != "":
		live = append(live, s.tags.begin)
	}
	if s.tags.open != "" {
		live = append(live, s.tags.open)
	}
	if s.closable {
		live = append(live, s.tags.close)
	}
	return live
}

// counts tells whether a live tag is one after some text. A model may well write of tags in its answer: an opening tag that is text counts
// before the answer alone.
func (s *Splitter) counts(tag, before string) bool {
	if tag != s.tags.open && tag != s.tags.begin || strings.Contains(tag, controlBegin) || tag == s.tags.open && s.tags.again {
		return true
	}
	return !s.answered && strings.TrimSpace(withoutControl(before)) == ""
}

// find returns the first live tag in text that counts; none is at the text's end.
func (s *Splitter) find(text string) (at int, tag string) {
	at = len(text)
	for _, t := range s.live() {
		if i := strings.Index(text, t); i >= 0 && i < at && s.counts(t, text[:i]) {
			at, tag = i, t
		}
	}
	return at, tag
}

// partial returns how many bytes at the end may be the beginning of a live tag.
func (s *Splitter) partial(text string) int {
	longest := 0
	for _, t := range s.live() {
		for n := min(len(t)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, t[:n]) && s.counts(t, text[:len(text)-n]) {
				longest = n
			}
		}
	}
	return longest
}

// cross goes over a tag; before is the text since the last one.
func (s *Splitter) cross(tag, before string) {
	s.tagged = true
	if state, ok := s.tags.parts[tag]; ok {
		switch state {
		case inHeader:
			s.header, s.headed = tag, true
		case asHeaderSays:
			state = partOf(unmarked(s.header + before))
		}
		s.state = state
		return
	}
	switch tag {
	case s.tags.open:
		s.state, s.closable = inThinking, false
	case s.tags.close:
		if s.state == inAnswer {
			s.stray = true
			s.thinking.WriteString(s.answer.String())
			s.answer.Reset()
		}
		s.state, s.closable = inAnswer, false
	case s.tags.begin:
		s.begun, s.closable = true, false
	}
}

// isHeader tells whether text may be the header of a part.
func isHeader(text string) bool {
	return len(text) <= maxHeader && !strings.ContainsRune(strings.TrimLeftFunc(text, unicode.IsSpace), '\n')
}

// partOf reads a header: <|start|>, who speaks, to=whom, <|channel|> and its name. What goes to a tool is no answer.
func partOf(header string) splitState {
	if _, to, ok := strings.Cut(header, "to="); ok && !strings.HasPrefix(to, "user") {
		return inThinking
	}
	if i := strings.LastIndex(header, channelTag); i >= 0 {
		switch channel, _, _ := strings.Cut(strings.TrimSpace(header[i+len(channelTag):]), " "); channel {
		case "", "final", "commentary", "assistant":
		default:
			return inThinking
		}
	}
	return inAnswer
}
