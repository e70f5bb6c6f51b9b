package main

import (
	"bytes"
	"slices"
	"strings"
)

// pasteFilter turns bracketed paste into marks: a newline inside it ends no line, and what
// is long is one mark until it is in the line editor, which draws all anew for each key.
type pasteFilter struct {
	ahead   bool // what is typed is for a later prompt: Enter becomes a mark too
	pasting bool
	held    []byte   // the paste in progress
	long    []string // what marks stand for
	escape  []byte   // the beginning of a bracket, perhaps
	cr      bool     // the last byte was a carriage return
	ready   []byte
}

func (p *pasteFilter) push(c byte) {
	bracket := []byte("\x1b[200~")
	if p.pasting {
		bracket = []byte("\x1b[201~")
	}
	p.escape = append(p.escape, c)
	switch {
	case bytes.Equal(p.escape, bracket):
		p.pasting, p.escape, p.cr = !p.pasting, p.escape[:0], false
		p.bracket()
		return
	case bytes.HasPrefix(bracket, p.escape):
		return
	}
	held := p.escape[:len(p.escape)-1]
	again := len(held) > 0 && c == bracket[0] // c may begin the bracket itself
	if !again {
		held = p.escape
	}
	for _, h := range held {
		p.emit(h)
	}
	p.escape = p.escape[:0]
	if again {
		p.escape = append(p.escape, c)
	}
}

// bracket is at the beginning of a paste and at its end.
func (p *pasteFilter) bracket() {
	if p.pasting {
		p.held = nil
		return
	}
	if text := p.held; len(text) > longPaste {
		p.long = append(p.long, string(text))
		p.ready = append(p.ready, string(pasteMark)...)
	} else {
		p.ready = append(p.ready, text...)
	}
	p.held = nil
}

func (p *pasteFilter) emit(c byte) {
	cr := p.cr
	p.cr = c == '\r'
	switch {
	case !p.pasting && p.ahead && (c == '\r' || c == '\n'):
		p.ready = append(p.ready, string(enterMark)...)
	case !p.pasting:
		p.ready = append(p.ready, c)
	case c == '\n' && cr:
	case c == '\n' || c == '\r':
		p.held = append(p.held, string(newlineMark)...)
	case c == '\t':
		p.held = append(p.held, string(tabMark)...)
	case c < ' ' || c == 0x7f: // a pasted control character is no key that was pressed
	default:
		p.held = append(p.held, c)
	}
}

const longPaste = 256 // bytes

// OnChange puts the text in the place of its mark. The line editor calls it after each key.
func (p *pasteFilter) OnChange(line []rune, pos int, key rune) ([]rune, int, bool) {
	if key != pasteMark {
		return nil, 0, false
	}
	text := p.long[0]
	p.long = p.long[1:]
	i := slices.Index(line, pasteMark)
	if i < 0 { // it was typed to no line
		return nil, 0, false
	}
	runes := []rune(text)
	return slices.Replace(line, i, i+1, runes...), pos - 1 + len(runes), true
}

// joinAhead makes one entry of what was typed without a prompt: its lines are joined, and
// the last Enter ends it. A command stands alone, as it takes one line.
func joinAhead(typed string) string {
	lines := strings.Split(typed, string(enterMark))
	rest := lines[len(lines)-1] // without an Enter so far
	var entries []string
	for i, line := range lines {
		last := len(entries) - 1
		switch {
		case line == "" && (last < 0 || i == len(lines)-1): // Enter alone
		case last < 0 || strings.HasPrefix(line, "/") || strings.HasPrefix(entries[last], "/"):
			entries = append(entries, line)
		default:
			entries[last] += string(newlineMark) + line
		}
	}
	text := strings.Join(entries, "\r")
	if rest == "" && len(lines) > 1 && text != "" {
		text = strings.TrimRight(text, string(newlineMark)) + "\r"
	}
	return text
}
