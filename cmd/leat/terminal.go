package main

import (
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
	keys    *keyboard
	past    *history
	warn    func(error)
	signals chan os.Signal
	bracket bool // the terminal is asked to bracket what is pasted
}

// completer returns what the end of line can become, and how many bytes of it that replaces.
type completer func(line string) (words []string, replaced int)

func openTerminal(past *history, complete completer, warn func(error)) (*lineTerminal, error) {
	keys, err := openKeyboard()
	if err != nil {
		return nil, err
	}
	t := &lineTerminal{
		keys: keys, past: past, warn: warn, signals: make(chan os.Signal, 1),
		bracket: runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb",
	}
	config := &readline.Config{
		AutoComplete:           lineCompleter(complete),
		Painter:                markPainter{},
		HistoryLimit:           historyLimit + 1,
		DisableAutoSaveHistory: true,
	}
	keys.configure(config)
	t.rl, err = readline.NewEx(config)
	if err != nil {
		keys.Close()
		return nil, err
	}
	signal.Notify(t.signals, os.Interrupt)
	if t.bracket {
		io.WriteString(t.rl.Config.Stdout, "\x1b[?2004h")
	}
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
	t.keys.atPrompt(true)
	t.rl.SetPrompt(prompt)
	line, err := t.rl.Readline()
	t.keys.atPrompt(false)
	if errors.Is(err, readline.ErrInterrupt) {
		if err = errInterrupted; line != "" {
			err = errCleared
		}
	}
	return fromMarks.Replace(line), err
}

func (t *lineTerminal) Remember(text string) {
	if err := t.past.add(text); err != nil {
		t.warn(err)
		t.past.path = "" // once is enough
	}
}

func (t *lineTerminal) Forget() error { return t.past.forget() }

func (t *lineTerminal) Interrupts() <-chan os.Signal { return t.signals }

// Restore gives the terminal back as it was, for a process that ends at once.
func (t *lineTerminal) Restore() {
	if t.bracket {
		io.WriteString(t.rl.Config.Stdout, "\x1b[?2004l")
	}
	t.keys.restore()
}

// Close ends a ReadLine in progress; the terminal is as it was before.
func (t *lineTerminal) Close() error {
	signal.Stop(t.signals)
	t.keys.Close() // first: the library waits for its reader
	err := t.rl.Close()
	t.Restore()
	return err
}

// Marks stand for what a line can't hold. They are private-use characters of the last
// plane, which no font and no text has.
const (
	newlineMark = '\U0010FF0A'
	tabMark     = '\U0010FF09'
	enterMark   = '\U0010FF0D' // Enter, typed while no prompt was there
	pasteMark   = '\U0010FF0E' // a long text
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
