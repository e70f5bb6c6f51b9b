package main

import (
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// screen shows an answer as it comes, on a terminal: control characters that a model
// makes can't move the cursor, and what it thinks stands apart.
type screen struct {
	w        io.Writer
	dim      bool // the terminal shows dimmed text
	thinking bool // whether to show that
	part     part // where the text is
	last     byte // last byte shown
}

type part int

const (
	partNone part = iota
	partThinking
	partAnswer
)

// dims tells whether w is a terminal that shows dimmed text. Windows' older consoles
// would show the codes.
func dims(w io.Writer) bool {
	return isTerminal(w) && runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
}

// show writes the next piece.
func (s *screen) show(thinking, text string) error {
	if s.thinking {
		if err := s.write(partThinking, thinking); err != nil {
			return err
		}
	}
	return s.write(partAnswer, text)
}

func (s *screen) write(p part, text string) error {
	text = printable(text)
	if s.part != p {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return nil
		}
		text = s.turn(p) + text
	}
	if text == "" {
		return nil
	}
	s.last = text[len(text)-1]
	_, err := io.WriteString(s.w, text)
	return err
}

// turn is what comes between one part and the next.
func (s *screen) turn(p part) string {
	out := ""
	if s.part == partThinking {
		out = s.endThinking() + "\n"
	}
	if p == partThinking {
		if s.dim {
			out += "\x1b[2m"
		} else {
			out += "(thinking) "
		}
	}
	s.part = p
	return out
}

func (s *screen) endThinking() string {
	out := ""
	if s.dim {
		out = "\x1b[0m"
	}
	if s.last != '\n' {
		out += "\n"
	}
	return out
}

// finish ends the line, and what was dimmed.
func (s *screen) finish() {
	switch {
	case s.part == partThinking:
		io.WriteString(s.w, s.endThinking())
	case s.part == partAnswer && s.last != '\n':
		io.WriteString(s.w, "\n")
	}
	s.part = partNone
}

// printable replaces control characters, but for newlines and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return utf8.RuneError
		}
		return r
	}, text)
}
