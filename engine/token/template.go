package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks in a guarded text, noncharacters, which Unicode keeps out of interchanged text.
// A spelling of one rune has no inside: it stands between open and shut, since what
// trims a text could move a single mark beside another token.
const (
	inside = "\uFDD0" // after the first rune of a spelling that must stay text
	open   = "\uFDD1"
	shut   = "\uFDD2"
)

var unmark = strings.NewReplacer(inside, "", open, "", shut, "")

// Guard marks every control token spelt in text, so that [Tokenizer.EncodeTemplate]
// takes it for the text it is: a message goes into a chat template guarded. A spelling
// only begun at the end is marked too, lest what comes next complete it.
func (t *Tokenizer) Guard(text string) string {
	text = unmark.Replace(text)
	var b strings.Builder
	for len(text) > 0 {
		off, size, id := t.special.find(text)
		b.WriteString(text[:off])
		text = text[off:]
		if id != none && t.kinds[id] != userDefined {
			// Cut after the first rune: no longer match can begin there.
			_, size = utf8.DecodeRuneInString(text)
			b.WriteString(t.mark(text[:size]))
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return t.guardEnd(b.String())
}

// guardEnd doesn't count white space at the end: many templates trim it.
func (t *Tokenizer) guardEnd(text string) string {
	end := len(strings.TrimRightFunc(text, unicode.IsSpace))
	for i := max(0, end-t.special.depth); i < end; i++ {
		if utf8.RuneStart(text[i]) && t.special.begins(text[i:end]) {
			_, size := utf8.DecodeRuneInString(text[i:])
			marked := t.mark(text[i : i+size])
			text = text[:i] + marked + text[i+size:]
			i, end = i+len(marked)-1, end+len(marked)-size
		}
	}
	return text
}

// mark keeps a rune from being a token or beginning one.
func (t *Tokenizer) mark(r string) string {
	if size, id := t.special.longest(r); size == len(r) && t.kinds[id] != userDefined {
		return open + r + shut
	}
	return r + inside
}

// EncodeTemplate turns the output of a chat template into ids: the template's control
// tokens become themselves, what was guarded stays text, and nothing is added.
func (t *Tokenizer) EncodeTemplate(text string) []ID {
	return t.split(make([]ID, 0, len(text)/3+2), text, t.findUnguarded, unmark.Replace)
}

// findUnguarded passes by what stands between marks.
func (t *Tokenizer) findUnguarded(text string) (off, size int, id ID) {
	for {
		at, size, id := t.special.find(text[off:])
		off += at
		if id == none || !strings.HasSuffix(text[:off], open) || !strings.HasPrefix(text[off+size:], shut) {
			return off, size, id
		}
		off += size
	}
}
