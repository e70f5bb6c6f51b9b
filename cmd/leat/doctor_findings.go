package main

import (
	"fmt"
	"io"
)

// problem is what is wrong, and what to do about it. With a fatal one leat can't run.
type problem struct {
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"`
	Fatal bool   `json:"fatal"`
}

// findings is what an examination tells: lines, in order, and problems.
type findings struct {
	out      io.Writer
	status   *status // nil: nothing tells what is done now
	problems []problem
	failure  error // the first fatal problem
}

// say tells at a terminal what is done now.
func (f *findings) say(format string, args ...any) {
	if f.status != nil && f.status.terminal {
		f.status.say(fmt.Sprintf(format, args...))
	}
}

// warn notes a problem that leat can live with.
func (f *findings) warn(what, hint string) {
	f.problems = append(f.problems, problem{What: what, Hint: hint})
}

// fail notes a problem that leat can't live with.
func (f *findings) fail(err error) {
	f.problems = append(f.problems, problem{What: err.Error(), Hint: hintFor(err), Fatal: true})
	if f.failure == nil {
		f.failure = err
	}
}

func (f *findings) heading(format string, args ...any) { fmt.Fprintf(f.out, format+"\n", args...) }

func (f *findings) field(label, format string, args ...any) {
	printField(f.out, label, fmt.Sprintf(format, args...))
}

func (f *findings) blank() { fmt.Fprintln(f.out) }

func (f *findings) printProblems() {
	if len(f.problems) == 0 {
		f.heading("No problems found.")
		return
	}
	f.heading("Problems")
	for n, p := range f.problems {
		fmt.Fprintf(f.out, "%4d %s\n", n+1, p.What)
		if p.Hint != "" {
			fmt.Fprintf(f.out, "     hint: %s\n", p.Hint)
		}
	}
}
