package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"leat/decompose"
)

// full takes some bytes, and no more.
type full struct {
	space int
	err   error
}

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.space)
	if f.space -= n; n < len(b) {
		return n, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: f.err}
	}
	return n, nil
}

// printing says for each command how it is called so that it prints to stdout: $DIR is an empty folder, $PACK a pack.
// Those that need a device say so.
var printing = map[string]struct {
	args   []string
	device bool
}{
	"leat":                       {},
	"leat help":                  {args: []string{"help"}},
	"leat version":               {args: []string{"version"}},
	"leat devices":               {args: []string{"devices"}},
	"leat doctor":                {args: []string{"doctor"}},
	"leat tokenize":              {args: []string{"tokenize", "demo", "-p", "Once upon a time"}},
	"leat plan":                  {args: []string{"plan", "demo", "--gpu", "RTX 3060"}},
	"leat show":                  {args: []string{"show", "demo", "--vram", "1GiB"}},
	"leat verify":                {args: []string{"verify", "$PACK"}},
	"leat decompose":             {args: []string{"decompose", "demo", "$DIR/out"}},
	"leat bench":                 {args: []string{"bench", "--tier", "list"}},
	"leat embed":                 {args: []string{"embed", "demo", "-p", "Once", "--pooling", "last"}, device: true},
	"leat eval":                  {args: []string{"eval", "demo", "--tokens", "1"}, device: true},
	"leat run":                   {args: []string{"run", "demo", "-p", "Once", "--raw", "-n", "2"}, device: true},
	"leat perplexity":            {args: []string{"perplexity", "demo", "-p", "Once upon a time there was a dog.", "--window", "4", "--limit", "1"}, device: true},
	"leat completion":            {args: []string{"completion"}},
	"leat completion bash":       {args: []string{"completion", "bash"}},
	"leat completion fish":       {args: []string{"completion", "fish"}},
	"leat completion zsh":        {args: []string{"completion", "zsh"}},
	"leat completion powershell": {args: []string{"completion", "powershell"}},
	"leat __complete":            {args: []string{"__complete", "r"}},
	"leat docs":                  {args: []string{"docs", "--help"}}, // of a build with a tag
}

// allCommands are those of the tree, with what cobra adds to it.
func allCommands() (list []*cobra.Command) {
	root := newRootCmd(&app{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		list = append(list, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return append(list, &cobra.Command{Use: "leat __complete"})
}

// TestFullStdout: no command is content where what it prints can't be written, whether all of it or the end.
func TestFullStdout(t *testing.T) {
	dir := t.TempDir()
	path, err := modelPath("demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decompose.Run(t.Context(), path, filepath.Join(dir, "pack"), decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range allCommands() {
		name := cmd.CommandPath()
		if !cmd.HasParent() {
			name = cmd.Use
		}
		row, ok := printing[name]
		if !ok {
			t.Errorf("%s has no row that says how it prints", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			calls := [][]string{row.args}
			if words := strings.Fields(name)[1:]; name != "leat __complete" {
				calls = append(calls, append(words, "--help"))
			}
			for _, args := range calls {
				if row.device && args[len(args)-1] != "--help" && !hasDevice() {
					t.Log("no device")
					continue
				}
				for _, space := range []int{0, 3} {
					if space > 0 && row.device {
						continue // as every other
					}
					work, args := t.TempDir(), slices.Clone(args)
					for i := range args {
						args[i] = strings.NewReplacer("$DIR", work, "$PACK", filepath.Join(dir, "pack")).Replace(args[i])
					}
					var errw bytes.Buffer
					code := newApp(strings.NewReader(""), &full{space, syscall.ENOSPC}, &errw).run(t.Context(), args)
					if want := "leat: error: write to stdout: no space left on device\n"; code != exitFailure || !strings.HasSuffix(before(errw.String(), "leat: hint"), want) {
						t.Errorf("%v with room for %d bytes: exit %d, want %d, stderr:\n%swant %s", args, space, code, exitFailure, &errw, want)
					}
				}
			}
		})
	}
}

func before(text, mark string) string {
	text, _, _ = strings.Cut(text, mark)
	return text
}

// TestReaderGone: who closes the pipe has read enough, and needs no message.
func TestReaderGone(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--help"}, {"plan", "demo", "--gpu", "RTX 3060"}} {
		var errw bytes.Buffer
		if code := newApp(strings.NewReader(""), &full{0, syscall.EPIPE}, &errw).run(t.Context(), args); code != exitFailure || errw.Len() > 0 {
			t.Errorf("%v: exit %d, stderr %q", args, code, &errw)
		}
	}
}

// TestStdoutAndMore: what went wrong beside stdout is said too.
func TestStdoutAndMore(t *testing.T) {
	withCommand(t, func(a *app, _ *cobra.Command, _ []string) error {
		a.out.Write([]byte("text"))
		return errors.New("the roof leaks")
	})
	var errw bytes.Buffer
	code := newApp(strings.NewReader(""), &full{0, os.ErrClosed}, &errw).run(t.Context(), []string{"probe"})
	if want := "leat: error: the roof leaks\nleat: error: write to stdout: file already closed\n"; code != exitFailure || errw.String() != want {
		t.Errorf("exit %d, stderr %q, want %q", code, &errw, want)
	}
}
