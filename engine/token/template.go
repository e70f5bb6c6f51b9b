package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// guard stands inside, or right after, the spelling of a control token that must stay
// text. It is a noncharacter, which Unicode keeps out of interchanged text.
const guard = "\uFDD0"

// Guard marks every control token spelt in text, so that [Tokenizer.EncodeTemplate]
// takes it for the text it is: a message goes into a chat template guarded. A spelling
// only begun at the end is marked too, lest what comes next complete it.
func (t *Tokenizer) Guard(text string) string {
	text = strings.ReplaceAll(text, guard, "")
	var b strings.Builder
	for len(text) > 0 {
		off, size, id := t.special.find(text)
		b.WriteString(text[:off])
		text = text[off:]
		if id != none && t.kinds[id] != userDefined {
			// Cut after the first rune: no match can begin there any more.
			_, size = utf8.DecodeRuneInString(text)
			b.WriteString(text[:size] + guard)
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
	for i := max(0, end-t.special.max); i < end; i++ {
		if utf8.RuneStart(text[i]) && t.special.begins(text[i:end]) {
			_, size := utf8.DecodeRuneInString(text[i:])
			text = text[:i+size] + guard + text[i+size:]
			i, end = i+size+len(guard)-1, end+len(guard)
		}
	}
	return text
}

// EncodeTemplate turns the output of a chat template into ids: the template's control
// tokens become themselves, what was guarded stays text, and nothing is added.
func (t *Tokenizer) EncodeTemplate(text string) []ID {
	return t.split(make([]ID, 0, len(text)/3+2), text, t.findUnguarded, func(s string) string {
		return strings.ReplaceAll(s, guard, "")
	})
}

// findUnguarded passes by what a guard follows: a spelling of one rune has no inside.
func (t *Tokenizer) findUnguarded(text string) (off, size int, id ID) {
	for {
		at, size, id := t.special.find(text[off:])
		off += at
		if id == none || !strings.HasPrefix(text[off+size:], guard) {
			return off, size, id
		}
		off += size
	}
}
