package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/chzyer/readline"
)

// lineTerminal is the terminal of the process, with line editing. The library edits one
// line of runes; a newline or tab that was pasted goes through it as a mark.
type lineTerminal struct {
	rl      *readline.Instance
	in      *readline.CancelableStdin
	past    *history
	warn    func(error)
	signals chan os.Signal
	paste   bool // the terminal is asked to bracket what is pasted
}

// completer returns what the end of line can become, and how many bytes of it that replaces.
type completer func(line string) (words []string, replaced int)

func openTerminal(past *history, complete completer, warn func(error)) (*lineTerminal, error) {
	t := &lineTerminal{
		in: readline.NewCancelableStdin(readline.Stdin), past: past, warn: warn, signals: make(chan os.Signal, 1),
		paste: runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb",
	}
	rl, err := readline.NewEx(&readline.Config{
		Stdin:                  &pasteReader{ReadCloser: t.in},
		AutoComplete:           lineCompleter(complete),
		Painter:                markPainter{},
		HistoryLimit:           historyLimit + 1,
		DisableAutoSaveHistory: true,
	})
	if err != nil {
		return nil, err
	}
	t.rl = rl
	signal.Notify(t.signals, os.Interrupt)
	return t, nil
}

func (t *lineTerminal) ReadLine(prompt string) (string, error) {
	// The library's history is refilled from ours: its own file takes one line an
	// entry, and its commit mixes up an edited entry with a later line.
	t.rl.ResetHistory()
	for _, entry := range t.past.entries {
		if err := t.rl.SaveHistory(toMarks.Replace(entry)); err != nil {
			return "", err
		}
	}
	if t.paste {
		io.WriteString(t.rl.Config.Stdout, "\x1b[?2004h")
		defer io.WriteString(t.rl.Config.Stdout, "\x1b[?2004l")
	}
	t.rl.SetPrompt(prompt)
	line, err := t.rl.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		err = errInterrupted
	}
	return fromMarks.Replace(line), err
}

func (t *lineTerminal) Remember(text string) {
	if err := t.past.add(text); err != nil {
		t.warn(err)
		t.past.path = "" // once is enough
	}
}

func (t *lineTerminal) Interrupts() <-chan os.Signal { return t.signals }

// Close ends a ReadLine in progress; the terminal is as it was before.
func (t *lineTerminal) Close() error {
	signal.Stop(t.signals)
	t.in.Close() // first: the library waits for its reader
	return t.rl.Close()
}

// Marks stand for what a line can't hold. They are private-use characters of the last
// plane, which no font and no text has.
const (
	newlineMark = '\U0010FF0A'
	tabMark     = '\U0010FF09'
)

var (
	toMarks   = strings.NewReplacer("\n", string(newlineMark), "\t", string(tabMark))
	fromMarks = strings.NewReplacer(string(newlineMark), "\n", string(tabMark), "\t")
)

// markPainter shows marks as characters of the same width.
type markPainter struct{}

func (markPainter) Paint(line []rune, _ int) []rune {
	shown := make([]rune, len(line))
	for i, r := range line {
		switch r {
		case newlineMark:
			r = '⏎'
		case tabMark:
			r = '⇥'
		}
		shown[i] = r
	}
	return shown
}

// lineCompleter adapts to the library, which wants the missing ends of words.
type lineCompleter completer

func (c lineCompleter) Do(line []rune, pos int) (ends [][]rune, length int) {
	words, replaced := c(string(line[:pos]))
	for _, word := range words {
		ends = append(ends, []rune(word[replaced:]))
	}
	return ends, replaced
}

// pasteReader turns bracketed paste into marks: a newline inside it ends no line.
type pasteReader struct {
	io.ReadCloser
	pasting bool
	escape  []byte // the beginning of a bracket, perhaps
	cr      bool   // the last byte was a carriage return
	ready   []byte
}

func (p *pasteReader) Read(b []byte) (int, error) {
	raw := make([]byte, 1024)
	for len(p.ready) == 0 {
		n, err := p.ReadCloser.Read(raw)
		for _, c := range raw[:n] {
			p.push(c)
		}
		if err != nil && len(p.ready) == 0 {
			return 0, err
		}
	}
	n := copy(b, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

func (p *pasteReader) push(c byte) {
	bracket := []byte("\x1b[200~")
	if p.pasting {
		bracket = []byte("\x1b[201~")
	}
	p.escape = append(p.escape, c)
	switch {
	case bytes.Equal(p.escape, bracket):
		p.pasting, p.escape, p.cr = !p.pasting, p.escape[:0], false
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

func (p *pasteReader) emit(c byte) {
	cr := p.cr
	p.cr = c == '\r'
	switch {
	case !p.pasting:
		p.ready = append(p.ready, c)
	case c == '\n' && cr:
	case c == '\n' || c == '\r':
		p.ready = append(p.ready, string(newlineMark)...)
	case c == '\t':
		p.ready = append(p.ready, string(tabMark)...)
	case c < ' ' || c == 0x7f: // a pasted control character is no key that was pressed
	default:
		p.ready = append(p.ready, c)
	}
}
