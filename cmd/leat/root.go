package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leat/internal/kernels"
)

// Exit codes, as the help explains them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const rootLong = `leat runs language models that are larger than the GPU's memory, on any Vulkan GPU.

Wherever a command wants a MODEL, it takes a GGUF file (any shard of it), a pack made
by "leat decompose", or the word demo for the small model inside this program.

Exit status:
  0    it worked
  1    it failed; stderr says why
  2    the command line is wrong
  130  interrupted

Ctrl-C ends a command within about a second, a second Ctrl-C at once.

Environment:
  LEAT_VULKAN_LIBRARY  the Vulkan loader to use, a file, in place of the system's`

const rootExample = `  leat run demo -p "Tell me a story about a dog and a ball." -n 120
  leat devices`

// commands makes the subcommands; each one's file appends to it.
var commands []func(*app) *cobra.Command

// app is what all commands share: the streams, and what the root's flags set.
type app struct {
	in       io.Reader
	out, err io.Writer
	log      *slog.Logger // warnings to stderr; with --verbose, everything
	verbose  bool
	noCache  bool // nothing that was found out about the machine is read or kept
	started  bool // a command's own code has run: later errors aren't about usage
	now      func() time.Time
	last     []func() error // what is left to do when a command's code is done
	tests    selfTests
	end      processEnd
}

func newApp(in io.Reader, out, errw io.Writer) *app {
	a := &app{in: in, out: out, err: errw, log: slog.New(slog.DiscardHandler), now: time.Now}
	a.tests.err, a.tests.now, a.end.err = errw, func() time.Time { return a.now() }, errw
	return a
}

// run is the whole program, less the process: it returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	defer context.AfterFunc(ctx, a.end.lastResort)()
	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := a.guard(fail)
	root := newRootCmd(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(working)
	if err != nil && !a.started && !out.failed() {
		err = a.usage(root, cmd, args, err)
	}
	var usage *usageError
	if errors.As(err, &usage) && usage.hint == "" {
		usage.hint = explains(cmd)
	}
	if !a.end.ended.CompareAndSwap(false, true) {
		select {} // the process is about to end
	}
	if a.end.exit != nil {
		out.Close()
	}
	return a.report(ctx, out.join(err))
}

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:               "leat",
		Short:             "Run language models that are larger than the GPU's memory",
		Long:              rootLong,
		Example:           rootExample,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.DisableSuggestions = true // a.usage makes them a hint of their own
	root.SuggestionsMinimumDistance = 2
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log what happens, to stderr")
	root.PersistentFlags().BoolVar(&a.noCache, "no-cache", false, "neither use nor keep what was found out about this machine before: compiled kernels, their self-tests, speeds")
	for _, make := range commands {
		c := make(a)
		a.wrap(c)
		root.AddCommand(c)
	}
	addCompletion(root)
	return root
}

// usageTemplate is cobra's, with flags that fit a terminal and no noise after the bool ones.
func usageTemplate(text string) string {
	return strings.NewReplacer(
		".LocalFlags.FlagUsages", "flagUsages .LocalFlags",
		".InheritedFlags.FlagUsages", "flagUsages .InheritedFlags",
	).Replace(text)
}

// wrap notes when the command's own code begins, and readies the log for it.
func (a *app) wrap(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.wrap(sub)
	}
	runE := c.RunE
	if runE == nil {
		return
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.started = true
		a.log = newLogger(a.err, a.verbose)
		kernels.NoteCrashes(a.cacheFolder())
		defer a.tests.tell(false)
		return a.finish(runE(cmd, args))
	}
}

// usageError is about the command line; the exit code is 2.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }
func (e *usageError) Hint() string  { return e.hint }

func usageErrorf(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// hintError gives an error of another package the hint that only a command can know.
type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }
func (e *hintError) Hint() string  { return e.hint }

// withHint is err with a hint for the user; nil stays nil.
func withHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hintError{error: err, hint: fmt.Sprintf(format, args...)}
}

// report prints err and its hint, one fact per line, and chooses the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.err, "leat: interrupted")
		return exitInterrupted
	}
	if unheard(err) {
		return exitFailure
	}
	a.explain(err)
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// explain prints err and its hint.
func (a *app) explain(err error) {
	printLines(a.err, "leat: error: ", err.Error())
	printLines(a.err, "leat: hint: ", hintFor(err))
}

func printLines(w io.Writer, prefix, text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			printWrapped(w, prefix+line)
		}
	}
}
