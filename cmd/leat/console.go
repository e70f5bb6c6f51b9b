package main

import (
	"context"
	"fmt"
	"strings"
)

// console is where a person types, and where the program answers for itself.
type console struct {
	a    *app
	term terminal
}

// note is talk of the program: it goes to stderr.
func (c *console) note(format string, args ...any) {
	printWrapped(c.a.err, "leat: "+fmt.Sprintf(format, args...))
}

// confirm asks a question. All but y and yes are a no, the end of the input too.
func (c *console) confirm(format string, args ...any) bool {
	answer, err := c.term.ReadLine(fmt.Sprintf(format, args...) + " [y/N] ")
	answer = strings.ToLower(strings.TrimSpace(answer))
	if err == nil && (answer == "y" || answer == "yes") {
		return true
	}
	c.note("nothing was changed")
	return false
}

// interruptible is ctx until Ctrl-C; those of before don't count. A second one ends the
// program, should the answer not end.
func (c *console) interruptible(ctx context.Context) (context.Context, func()) {
	interrupts := c.term.Interrupts() // the goroutine may outlive this terminal
	select {
	case <-interrupts:
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
			return
		}
		select {
		case <-interrupts:
			if c.a.end.exit != nil {
				c.a.end.lastWord()
				c.a.end.exit(exitInterrupted)
			}
		case <-over:
		}
	}()
	return ctx, func() {
		cancel()
		close(over)
	}
}
