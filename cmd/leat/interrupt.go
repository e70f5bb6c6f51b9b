package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	a.exit, a.patience = os.Exit, func() <-chan time.Time { return time.After(patience) }
	change(ctx, a)
	return a.run(ctx, args)
}

// lastResort ends the process where an interrupted command does not. What leat writes
// bears it: whole files get their names last, and a pack is taken up again.
func (a *app) lastResort() {
	if a.exit == nil || a.ownInterrupts.Load() {
		return
	}
	<-a.patience()
	if a.ownInterrupts.Load() || !a.ended.CompareAndSwap(false, true) {
		return
	}
	a.lastWord()
	if isTerminal(a.err) {
		io.WriteString(a.err, "\n") // a progress bar may stand there
	}
	output.Abandon()
	fmt.Fprintln(a.err, "leat: interrupted")
	a.exit(exitInterrupted)
}

// lastWord runs what a command left to be done if the process ends without it.
func (a *app) lastWord() {
	if do := a.atExit.Swap(nil); do != nil {
		(*do)()
	}
}

// ownInterrupt gives Ctrl-C to a command until the function returned is called. The new
// ctx ends with what ends the program otherwise, and with its terminal.
func (a *app) ownInterrupt(ctx context.Context) (context.Context, func()) {
	a.ownInterrupts.Store(true)
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), signals...)
	disarm := context.AfterFunc(ctx, func() {
		a.ownInterrupts.Store(false)
		a.lastResort()
	})
	return ctx, func() {
		disarm()
		stop()
		a.ownInterrupts.Store(false)
	}
}
