package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// script is a terminal where a list of lines is typed; ^C is an interrupt.
type script struct {
	lines      []string
	remembered []string
	signals    chan os.Signal
	prompts    []string
}

func newScript(lines ...string) *script {
	return &script{lines: lines, signals: make(chan os.Signal, 1)}
}

func (s *script) ReadLine(prompt string) (string, error) {
	s.prompts = append(s.prompts, prompt)
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	if typed, ok := strings.CutSuffix(line, "^C"); ok && typed != "" {
		return "", errCleared
	} else if ok {
		return "", errInterrupted
	}
	return line, nil
}

func (s *script) Remember(text string)         { s.remembered = append(s.remembered, text) }
func (s *script) Forget() error                { return nil }
func (s *script) Interrupts() <-chan os.Signal { return s.signals }
func (s *script) Close() error                 { return nil }

func TestReadInput(t *testing.T) {
	for _, c := range []struct {
		name   string
		lines  []string
		want   string
		quoted bool
		fails  error
	}{
		{"a line", []string{"hello "}, "hello", false, nil},
		{"backslash", []string{`one\`, `two\`, "three"}, "one\ntwo\nthree", false, nil},
		{"two backslashes", []string{`C:\\`}, `C:\\`, false, nil},
		{"quoted", []string{`"""`, "one", "", " two", `"""`}, "one\n\n two", true, nil},
		{"quoted from the first line", []string{`"""one`, `two"""`}, "one\ntwo", true, nil},
		{"quoted on one line", []string{`"""one\"""`}, `one\`, true, nil},
		{"quoted command is text", []string{`"""/quit"""`}, "/quit", true, nil},
		{"quotes inside a line", []string{`say """ now`}, `say """ now`, false, nil},
		{"command with quoted argument", []string{`/system """one`, `two"""`}, "/system one\ntwo", false, nil},
		{"pasted", []string{"one\ntwo\n\n"}, "one\ntwo", false, nil},
		{"pasted quotes", []string{"\"\"\"\none\n\"\"\"\n"}, "one", true, nil},
		{"leaves in the middle", []string{`"""`, "one"}, "", false, io.EOF},
		{"interrupted in the middle", []string{`one\`, "^C"}, "", false, errCleared},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(c.lines...)
			got, quoted, err := readInput(s)
			if got != c.want || quoted != c.quoted || !errors.Is(err, c.fails) {
				t.Errorf("got %q, quoted %v, error %v; wanted %q, %v, %v", got, quoted, err, c.want, c.quoted, c.fails)
			}
			if s.prompts[0] != promptFirst || slices.Contains(s.prompts[1:], promptFirst) {
				t.Errorf("prompts %q", s.prompts)
			}
			if err == nil && strings.TrimLeft(s.remembered[0], " ") != c.want {
				t.Errorf("remembered %q", s.remembered)
			}
		})
	}
}
