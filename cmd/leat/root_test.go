package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"leat/engine"
	"leat/vk"
)

// leat runs the program as main does and returns what it printed and its exit code.
func leat(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return leatContext(t, t.Context(), args...)
}

func leatContext(t *testing.T, ctx context.Context, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errw bytes.Buffer
	code = newApp(strings.NewReader(""), &out, &errw).run(ctx, args)
	return out.String(), errw.String(), code
}

// withCommand adds a command whose work is fn for the length of the test.
func withCommand(t *testing.T, fn func(a *app, cmd *cobra.Command, args []string) error) {
	before := commands
	t.Cleanup(func() { commands = before })
	commands = append(before[:len(before):len(before)], func(a *app) *cobra.Command {
		cmd := &cobra.Command{
			Use:  "probe [WHAT]",
			Args: cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return fn(a, cmd, args) },
		}
		var size sizeFlag
		cmd.Flags().Var(&size, "size", "a size")
		return cmd
	})
}

func TestUsageErrors(t *testing.T) {
	withCommand(t, func(*app, *cobra.Command, []string) error { return nil })
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown command":      {[]string{"frobnicate"}, "leat: error: unknown command \"frobnicate\"\nleat: hint: \"leat --help\" explains the usage\n"},
		"command nearly right": {[]string{"versoin"}, "leat: error: unknown command \"versoin\"\nleat: hint: did you mean \"leat version\"?\n"},
		"unknown flag":         {[]string{"probe", "--nope"}, "leat: error: unknown flag: --nope\nleat: hint: \"leat probe --help\" explains the usage\n"},
		"too many arguments":   {[]string{"probe", "a", "b"}, "leat: error: found \"b\", wanted flags alone\nleat: hint: \"leat probe --help\" explains the usage\n"},
		"bad size": {[]string{"probe", "--size", "big"}, "leat: error: invalid argument \"big\" for \"--size\" flag: size \"big\": want a number and a unit, as 6.5GiB, 512MiB or 8GB\n" +
			"leat: hint: \"leat probe --help\" explains the usage\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := leat(t, tt.args...)
			if code != exitUsage || stdout != "" || stderr != tt.want {
				t.Errorf("exit %d, stdout %q, stderr:\n%swant exit 2 and:\n%s", code, stdout, stderr, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	plain := errors.New("open x.gguf: it is gone")
	tests := map[string]struct {
		ctx  context.Context
		err  error
		want string
		code int
	}{
		"none":             {t.Context(), nil, "", exitOK},
		"plain":            {t.Context(), plain, "leat: error: open x.gguf: it is gone\n", exitFailure},
		"with hint":        {t.Context(), fmt.Errorf("load: %w", withHint(plain, "try %s", "y.gguf")), "leat: error: load: open x.gguf: it is gone\nleat: hint: try y.gguf\n", exitFailure},
		"two facts":        {t.Context(), errors.Join(plain, errors.New("disk full")), "leat: error: open x.gguf: it is gone\nleat: error: disk full\n", exitFailure},
		"usage":            {t.Context(), usageErrorf("-n %d: want at least 1", 0), "leat: error: -n 0: want at least 1\nleat: hint: \"leat probe --help\" explains the usage\n", exitUsage},
		"interrupted":      {canceled, fmt.Errorf("run: %w", context.Canceled), "leat: interrupted\n", exitInterrupted},
		"other, canceled":  {canceled, plain, "leat: error: open x.gguf: it is gone\n", exitFailure},
		"canceled, no int": {t.Context(), context.Canceled, "leat: error: context canceled\n", exitFailure},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			withCommand(t, func(*app, *cobra.Command, []string) error { return tt.err })
			_, stderr, code := leatContext(t, tt.ctx, "probe")
			if code != tt.code || stderr != tt.want {
				t.Errorf("exit %d, stderr %q, want exit %d, %q", code, stderr, tt.code, tt.want)
			}
		})
	}
}

func TestHelpExplainsExitStatus(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		stdout, stderr, code := leat(t, args...)
		if code != exitOK || stderr != "" {
			t.Errorf("leat %v: exit %d, stderr %q", args, code, stderr)
		}
		for _, want := range []string{"Exit status:", "130  interrupted", "devices", "--verbose"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("leat %v does not print %q:\n%s", args, want, stdout)
			}
		}
		if strings.Contains(stdout, "true|false") {
			t.Errorf("leat %v: noise after bool flags:\n%s", args, stdout)
		}
	}
}

// The help's table of exit codes has a row for each code there is, and the codes are so.
func TestExitStatusTable(t *testing.T) {
	_, table, _ := strings.Cut(rootLong, "Exit status:\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		code, meaning, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || rows[code] != "" {
			t.Errorf("row %q: want a code, once, and what it means", line)
		}
		rows[code] = strings.TrimSpace(meaning)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		code    int
		meaning string
		ctx     context.Context
		err     error
		args    []string
	}{
		{exitOK, "it worked", t.Context(), nil, []string{"probe"}},
		{exitFailure, "it failed; stderr says why", t.Context(), errors.New("disk full"), []string{"probe"}},
		{exitUsage, "the command line is wrong", t.Context(), nil, []string{"probe", "--nope"}},
		{exitInterrupted, "interrupted", canceled, context.Canceled, []string{"probe"}},
	}
	for _, tt := range tests {
		t.Run(tt.meaning, func(t *testing.T) {
			withCommand(t, func(*app, *cobra.Command, []string) error { return tt.err })
			if _, _, code := leatContext(t, tt.ctx, tt.args...); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
		})
		if got := rows[fmt.Sprint(tt.code)]; got != tt.meaning {
			t.Errorf("the help says of exit %d: %q, want %q", tt.code, got, tt.meaning)
		}
	}
	if len(rows) != len(tests) {
		t.Errorf("the help has %d exit codes, want %d: %v", len(rows), len(tests), rows)
	}
}

// What the environment does is in the help.
func TestHelpExplainsEnvironment(t *testing.T) {
	if !strings.Contains(rootLong, loaderEnv) {
		t.Errorf("the help does not name %s", loaderEnv)
	}
}

func TestHintFor(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string // part; "": no hint
	}{
		"its own":         {withHint(vk.ErrDeviceLost, "do this"), "do this"},
		"context full":    {fmt.Errorf("run: %w", engine.ErrContextFull), "--ctx"},
		"device lost":     {fmt.Errorf("run: %w", engine.ErrDeviceLost), "leat doctor"},
		"device memory":   {&vk.CallError{Call: "vkAllocateMemory", Result: vk.ErrOutOfDeviceMemory}, "--vram"},
		"host memory":     {&vk.CallError{Call: "vkAllocateMemory", Result: vk.ErrOutOfHostMemory}, "--ram"},
		"nothing to tell": {errors.New("disk full"), ""},
	} {
		got := hintFor(tt.err)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: hint %q, want one with %q", name, got, tt.want)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	root := newRootCmd(&app{})
	if root.Example == "" {
		t.Error("leat has no example")
	}
	for _, cmd := range root.Commands() {
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("leat %s: its help needs a Short and an Example", cmd.Name())
		}
	}
}

func TestLog(t *testing.T) {
	withCommand(t, func(a *app, _ *cobra.Command, _ []string) error {
		a.log.Debug("a detail")
		a.log.Warn("a warning", "size", 3, "error", errors.New("it leaks"))
		return nil
	})
	_, quiet, _ := leat(t, "probe")
	if quiet != "leat: warning: a warning (size: 3): it leaks\n" {
		t.Errorf("without -v: %q", quiet)
	}
	_, loud, _ := leat(t, "probe", "-v")
	if !strings.Contains(loud, "a detail") || !strings.Contains(loud, "a warning") {
		t.Errorf("with -v: %q", loud)
	}
}

func TestModelPath(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	path, err := modelPath("demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if path, err := modelPath("./demo"); err != nil || path != "./demo" { // our package of that name
		t.Errorf("modelPath(./demo) = %q, %v", path, err)
	}
	_, err = modelPath("nowhere/model.gguf")
	if !errors.Is(err, os.ErrNotExist) || hintFor(err) == "" {
		t.Errorf("modelPath of nothing: %v, hint %q", err, hintFor(err))
	}
}

func flagsOf(c *cobra.Command) (list []*pflag.Flag) {
	c.Flags().VisitAll(func(f *pflag.Flag) { list = append(list, f) })
	return list
}
