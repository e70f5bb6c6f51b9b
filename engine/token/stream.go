package token

import (
	"strings"
	"unicode/utf8"
)

// Stream turns ids into text as they come: whole runes only, always valid UTF-8.
type Stream struct {
	t       *Tokenizer
	pending []byte // the start of a rune; at most 3 bytes
}

// NewStream begins a reply. Its text goes on after a prompt, so a leading space stays.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t} }

// Push takes the next id and returns the runes it completes. A byte that can't belong
// to a rune shows as U+FFFD.
func (s *Stream) Push(id ID) string {
	s.pending = append(s.pending, s.t.Piece(id)...)
	if !utf8.FullRune(s.pending) {
		return ""
	}
	var b strings.Builder
	b.Grow(len(s.pending))
	n := 0
	for utf8.FullRune(s.pending[n:]) {
		r, size := utf8.DecodeRune(s.pending[n:])
		b.WriteRune(r)
		n += size
	}
	s.pending = append(s.pending[:0], s.pending[n:]...)
	return b.String()
}

// Flush ends the reply: an incomplete rune shows as one U+FFFD.
func (s *Stream) Flush() string {
	if len(s.pending) == 0 {
		return ""
	}
	s.pending = nil
	return string(utf8.RuneError)
}
