package token

import (
	"strings"
	"unicode/utf8"
)

// guard stands inside the spelling of a control token that must stay text. It is a
// noncharacter, which Unicode keeps out of interchanged text.
const guard = "\uFDD0"

// Guard marks every control token spelt in text, so that [Tokenizer.EncodeTemplate]
// takes it for the text it is: a message goes into a chat template guarded.
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
	return b.String()
}

// EncodeTemplate turns the output of a chat template into ids: the template's control
// tokens become themselves, what was guarded stays text, and nothing is added.
func (t *Tokenizer) EncodeTemplate(text string) []ID {
	return t.split(make([]ID, 0, len(text)/3+2), text, t.special, func(s string) string {
		return strings.ReplaceAll(s, guard, "")
	})
}
