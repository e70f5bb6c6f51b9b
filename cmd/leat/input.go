package main

import (
	"errors"
	"os"
	"strings"
)

// terminal is where a person types.
type terminal interface {
	// ReadLine reads one line, which holds newlines where some were pasted. Ctrl-C is
	// errInterrupted, or errCleared where it cleared some text; Ctrl-D is io.EOF.
	ReadLine(prompt string) (string, error)
	Remember(text string) // for the arrow keys, now and in later runs
	Forget() error        // what is remembered is for this run alone, from its beginning
	Interrupts() <-chan os.Signal
	Close() error
}

var (
	errInterrupted = errors.New("interrupted at the prompt")
	errCleared     = errors.New("what was typed is cleared")
)

const (
	promptFirst = ">>> "
	promptMore  = "... "
	quotes      = `"""`
)

// readInput reads one message or command: a line; lines that end in a backslash and
// the one after them; or what stands between """ and """. Quoted text is never a command.
func readInput(t terminal) (text string, quoted bool, err error) {
	line, err := t.ReadLine(promptFirst)
	if err != nil {
		return "", false, err
	}
	head, rest := cutCommand(line)
	if body, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t"), quotes); ok {
		body, err = readQuoted(t, body)
		text, quoted = head+body, head == ""
	} else {
		text, err = readContinued(t, line)
	}
	if errors.Is(err, errInterrupted) {
		err = errCleared // the lines before it
	}
	if err != nil {
		return "", false, err
	}
	text = strings.TrimRight(text, " \t\n")
	if quoted && strings.HasPrefix(text, "/") {
		t.Remember(" " + text) // as it has to be typed on one line
	} else {
		t.Remember(text)
	}
	return text, quoted, nil
}

// cutCommand parts a command's name, with the blank behind it, from its argument.
func cutCommand(line string) (head, rest string) {
	if !strings.HasPrefix(line, "/") {
		return "", line
	}
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return line, ""
	}
	return line[:i] + " ", line[i+1:]
}

func readQuoted(t terminal, body string) (string, error) {
	for {
		trimmed := strings.TrimRight(body, " \t\n")
		if inner, ok := strings.CutSuffix(trimmed, quotes); ok {
			return strings.TrimPrefix(inner, "\n"), nil
		}
		line, err := t.ReadLine(promptMore)
		if err != nil {
			return "", err
		}
		body += "\n" + line
	}
}

func readContinued(t terminal, text string) (string, error) {
	for {
		n := len(text) - len(strings.TrimRight(text, `\`))
		if n%2 == 0 { // two backslashes at the end are themselves
			return text, nil
		}
		line, err := t.ReadLine(promptMore)
		if err != nil {
			return "", err
		}
		text = text[:len(text)-1] + "\n" + line
	}
}
