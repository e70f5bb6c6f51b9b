package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// guarded is stdout. The first error of writing to it ends the command: what follows would reach nobody.
type guarded struct {
	w    io.Writer
	fail context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

// guard lets no error of a.out pass unnoticed. A terminal takes whatever is written, and commands ask it for its width.
func (a *app) guard(fail context.CancelCauseFunc) *guarded {
	g := &guarded{w: a.out, fail: fail}
	if !isTerminal(a.out) {
		a.out = g
	}
	return g
}

func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	n, err := g.w.Write(b)
	if err != nil {
		g.err = &stdoutError{err}
		g.fail(g.err)
		return n, g.err
	}
	return n, nil
}

// Close closes the process's stdout, as some file systems report errors only then.
func (g *guarded) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.w.(*os.File)
	if !ok || isTerminal(f) {
		return
	}
	if err := f.Close(); err != nil && g.err == nil {
		g.err = &stdoutError{err}
	}
}

func (g *guarded) failed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err != nil
}

// join adds what went wrong with stdout to what a command said.
func (g *guarded) join(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var told *stdoutError
	switch {
	case g.err == nil:
		return err
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &told):
		return g.err
	}
	return errors.Join(err, g.err)
}

// stdoutError is an error of writing to stdout.
type stdoutError struct{ error }

func (e *stdoutError) Error() string {
	err := e.error
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return "write to stdout: " + err.Error()
}

func (e *stdoutError) Unwrap() error { return e.error }

// unheard reports whether err says only that the reader of stdout has gone, as head does when it has enough. Where the
// signal for that is not ignored, it has ended the process by now.
func unheard(err error) bool {
	var out *stdoutError
	return errors.As(err, &out) && errors.Is(out, syscall.EPIPE)
}
