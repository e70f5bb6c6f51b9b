package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// status says what goes on: a line that changes on a terminal, else a line now and then.
// Several goroutines may use it. A nil status says nothing.
type status struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	mu     sync.Mutex
	shown  time.Time
	open   bool // the line stands on the terminal
	closed bool
}

func (a *app) newStatus() *status {
	return &status{w: a.err, terminal: isTerminal(a.err), now: a.now, shown: a.now()}
}

// say replaces what was said before.
func (s *status) say(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case s.closed:
	case s.terminal:
		s.open = true
		fmt.Fprintf(s.w, "\r\x1b[Kleat: %s", text)
	case now.Sub(s.shown) >= lineEvery:
		s.shown = now
		fmt.Fprintf(s.w, "leat: %s\n", text)
	}
}

// done says what stays.
func (s *status) done(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.wipe()
	s.shown = s.now()
	fmt.Fprintf(s.w, "leat: %s\n", text)
}

// clear takes the line away until more is said.
func (s *status) clear() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
}

func (s *status) wipe() {
	if s.open {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.open = false
	}
}

// close takes the line away; nothing is said afterwards. It may be called twice.
func (s *status) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.closed = true
}
