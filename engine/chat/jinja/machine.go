package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Limits bound what one rendering may cost; zero means the default.
type Limits struct {
	Steps  int // nodes evaluated, items visited, 64 bytes looked at
	Bytes  int // of memory asked for, whether or not it was let go again
	Output int // bytes of text
}

const (
	defaultSteps  = 5e6
	defaultBytes  = 256 << 20
	defaultOutput = 16 << 20

	maxSource  = 1 << 20
	maxRange   = 100_000 // as Jinja's sandbox has it
	maxNesting = 200     // of a template's text
	maxDepth   = 5000    // of evaluation
)

// ErrLimit is what a template that asks for too much ends with.
var ErrLimit = errors.New("the template asks for too much")

// Error says where in a template something went wrong.
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Refusal is a template's own raise_exception.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return "the template refuses: " + r.Text }

// Inside the package a failure is a panic with an *Error, which guard turns back.
func failAt(line int, format string, args ...any) { panic(&Error{line, fmt.Errorf(format, args...)}) }

func guard(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	default:
		*err = fmt.Errorf("fault of our interpreter: %v", p)
	}
}

// machine is one rendering.
type machine struct {
	ctx   context.Context
	left  Limits
	depth int
	line  int // of the statement that runs
	out   *buffer
}

func (m *machine) fail(format string, args ...any) { failAt(m.line, format, args...) }

// step pays for work; n may be any number that len gives.
func (m *machine) step(n int) {
	before := m.left.Steps
	m.left.Steps -= n
	if m.left.Steps < 0 {
		m.fail("%w: it takes too many steps", ErrLimit)
	}
	if before>>10 != m.left.Steps>>10 {
		if err := m.ctx.Err(); err != nil {
			m.fail("%w", err)
		}
	}
}

// scan pays for looking at n bytes, beyond the step that every operation costs.
func (m *machine) scan(n int) { m.step(n >> 6) }

// spend pays for n bytes about to be allocated.
func (m *machine) spend(n int) {
	m.left.Bytes -= n
	if n < 0 || m.left.Bytes < 0 {
		m.fail("%w: it needs too much memory", ErrLimit)
	}
	m.scan(n)
}

// mul is a product for spend: a negative one means zero, one beyond all limits fails.
func (m *machine) mul(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > defaultBytes || b > (1<<40)/a {
		m.fail("%w: it needs too much memory", ErrLimit)
	}
	return a * b
}

func (m *machine) enter() {
	if m.depth++; m.depth > maxDepth {
		m.fail("%w: it is nested too deeply", ErrLimit)
	}
	m.step(1)
}

func (m *machine) leave() { m.depth-- }

// take binds arguments to names; what was not given is nil, as none is.
func (m *machine) take(f string, a args, names ...string) []Value {
	out := make([]Value, len(names))
	if len(a.pos) > len(names) {
		m.fail("%s takes at most %d arguments, found %d", f, len(names), len(a.pos))
	}
	copy(out, a.pos)
next:
	for i, n := range a.names {
		for j, want := range names {
			if n == want {
				out[j] = a.kw[i]
				continue next
			}
		}
		m.fail("%s takes no argument %q", f, n)
	}
	return out
}

// buffer collects text that is paid for.
type buffer struct {
	m     *machine
	b     strings.Builder
	limit int
}

func (b *buffer) add(s string) {
	b.m.spend(len(s))
	if b.limit > 0 && b.b.Len()+len(s) > b.limit {
		b.m.fail("%w: its output is longer than %d bytes", ErrLimit, b.limit)
	}
	b.b.WriteString(s)
}

// capture runs f with its output taken instead of shown.
func (m *machine) capture(f func()) string {
	outer := m.out
	m.out = &buffer{m: m}
	f()
	s := m.out.b.String()
	m.out = outer
	return s
}
