package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"leat/internal/kernels/cache"
	"leat/internal/output"
)

// patience is how long an interrupted command may take to end by itself. A driver that
// compiles, or a kernel that pins a gigabyte, listens to nobody.
const patience = 700 * time.Millisecond

// process is main: it ends within about a second of the first Ctrl-C, at once with the second.
func process(args []string) int { return prepared(args, func(context.Context, *app) {}) }

// prepared is process, with what a test changes of the app; ctx ends with an interrupt.
func prepared(args []string, change func(ctx context.Context, a *app)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		cache.ClearMarkers() // whom its user ends no driver has crashed
		stop()
	})
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.end.exit, a.end.patience = os.Exit, func() <-chan time.Time { return time.After(patience) }
	change(ctx, a)
	return a.run(ctx, args)
}

// processEnd is how the process ends where a command does not return.
type processEnd struct {
	exit          func(code int) // nil: the process is none of our own
	err           io.Writer
	patience      func() <-chan time.Time // see lastResort
	ownInterrupts atomic.Bool             // Ctrl-C is for the command
	ended         atomic.Bool             // the last word is said
	atExit        atomic.Pointer[func()]  // see lastWord
}

// lastResort ends the process where an interrupted command does not. What leat writes
// bears it: whole files get their names last, and a pack is taken up again.
func (e *processEnd) lastResort() {
	if e.exit == nil || e.ownInterrupts.Load() {
		return
	}
	<-e.patience()
	if e.ownInterrupts.Load() || !e.ended.CompareAndSwap(false, true) {
		return
	}
	e.lastWord()
	if isTerminal(e.err) {
		io.WriteString(e.err, "\n") // a progress bar may stand there
	}
	output.Abandon()
	fmt.Fprintln(e.err, "leat: interrupted")
	e.exit(exitInterrupted)
}

// lastWord runs what a command left to be done if the process ends without it.
func (e *processEnd) lastWord() {
	if do := e.atExit.Swap(nil); do != nil {
		(*do)()
	}
}

// ownInterrupt gives Ctrl-C to a command until the function returned is called. The new
// ctx ends with what ends the program otherwise, and with its terminal.
func (e *processEnd) ownInterrupt(ctx context.Context) (context.Context, func()) {
	e.ownInterrupts.Store(true)
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), signals...)
	disarm := context.AfterFunc(ctx, func() {
		e.ownInterrupts.Store(false)
		e.lastResort()
	})
	return ctx, func() {
		disarm()
		stop()
		e.ownInterrupts.Store(false)
	}
}
