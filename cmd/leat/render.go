package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen shows an answer as it comes, on a terminal: lines break between words, control
// characters that a model makes can't move the cursor, and what it thinks stands apart.
type screen struct {
	text     wrapper
	dim      bool    // the terminal shows dimmed text
	thinking bool    // whether to show that
	status   *status // says that the model thinks, where that isn't shown
	begin    time.Time
	part     part // where the text is
	last     byte // last byte shown
}

// newScreen is a screen on stdout.
func (a *app) newScreen(thinking bool) *screen {
	return &screen{text: newWrapper(a.out), dim: dims(a.out), thinking: thinking, status: a.newStatus()}
}

func newWrapper(w io.Writer) wrapper {
	return wrapper{w: w, columns: func() int { return columnsOf(w) }, erases: runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb"}
}

// printWrapped writes a line of the program's own.
func printWrapped(w io.Writer, line string) {
	out := newWrapper(w)
	out.whole = true
	_ = out.push(line + "\n") // stderr that is gone has no reader
}

// printText shows a text as answers are shown.
func (a *app) printText(text string) {
	s := a.newScreen(true)
	_ = s.show("", text) // a terminal that is gone shows at the prompt
	s.finish()
}

// columnsOf is the width of a terminal; 0: w is none, or doesn't say.
func columnsOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
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
	if !s.thinking {
		s.hidden(thinking)
	} else if err := s.write(partThinking, thinking); err != nil {
		return err
	}
	return s.write(partAnswer, text)
}

// hidden says on the status line that the model thinks.
func (s *screen) hidden(thinking string) {
	if thinking != "" && s.part == partNone {
		s.begin = sayThinking(s.status, s.begin)
	}
}

// sayThinking says on a terminal for how long the model has been thinking; a zero begin is now.
func sayThinking(st *status, begin time.Time) time.Time {
	if st == nil || !st.terminal { // a log needs no such lines
		return begin
	}
	if begin.IsZero() {
		begin = st.now()
	}
	text := "thinking"
	if took := st.now().Sub(begin); took >= time.Second {
		text += fmt.Sprintf(" for %.0f s", took.Seconds())
	}
	st.say(text)
	return begin
}

func (s *screen) write(p part, text string) error {
	text = printable(text)
	if s.part != p {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return nil
		}
		if err := s.turn(p); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	s.last = text[len(text)-1]
	return s.text.push(text)
}

// turn is what comes between one part and the next.
func (s *screen) turn(p part) error {
	s.status.clear()
	if s.part == partThinking {
		if err := s.endThinking(); err != nil {
			return err
		}
		s.text.raw("\n")
	}
	s.part = p
	switch {
	case p != partThinking:
	case s.dim:
		s.text.raw("\x1b[2m")
	default:
		return s.text.push("(thinking) ")
	}
	return nil
}

func (s *screen) endThinking() error {
	err := s.text.end()
	if s.dim {
		s.text.raw("\x1b[0m")
	}
	if s.last != '\n' {
		s.text.endLine()
	}
	s.text.fence = "" // a code block doesn't reach into the answer
	return err
}

// finish ends the line, and what was dimmed.
func (s *screen) finish() {
	s.status.close()
	switch {
	case s.part == partThinking:
		s.endThinking()
	case s.part == partAnswer && s.last != '\n':
		s.text.endLine()
	}
	s.text.flush()
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
