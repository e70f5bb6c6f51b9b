package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leat/decompose"
	"leat/tools/await"
	"leat/tools/synth/synthetic"
)

// TestLastResort: a command that does not listen is ended, one that does has the last word.
func TestLastResort(t *testing.T) {
	for _, c := range []struct {
		name string
		own  bool // the command has Ctrl-C to itself
		over bool // it ended by itself meanwhile
		want bool
	}{
		{"deaf", false, false, true},
		{"ends by itself", false, true, false},
		{"a conversation", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var errw bytes.Buffer
			a := newApp(strings.NewReader(""), &errw, &errw)
			code := -1
			a.end.exit = func(n int) { code = n }
			a.end.patience = func() <-chan time.Time {
				a.end.ended.Store(c.over)
				now := make(chan time.Time)
				close(now)
				return now
			}
			ctx, back := t.Context(), func() {}
			if c.own {
				ctx, back = a.end.ownInterrupt(ctx)
			}
			a.end.lastResort()
			if got := code == exitInterrupted && errw.String() == "leat: interrupted\n"; got != c.want {
				t.Errorf("exit code %d, %q", code, errw.String())
			}
			if ctx.Err() != nil {
				t.Error("the command's own context has ended")
			}
			back()
			if a.end.ownInterrupts.Load() {
				t.Error("Ctrl-C is still the conversation's")
			}
		})
	}
}

// Variables of a child process that is interrupted: at which of its moments, and whether it goes on meanwhile.
const (
	momentVariable = "LEAT_TEST_MOMENT"
	goesOnVariable = "LEAT_TEST_GOES_ON"
	momentFD       = 3 // where the child tells that the moment has come
)

// program is main, for a test that runs the program. Its clock stands still, so that it says nothing of what takes long on
// a busy machine.
func program() {
	at, err := strconv.ParseInt(os.Getenv(momentVariable), 10, 64)
	if err != nil {
		begun := time.Now()
		os.Exit(prepared(os.Args[1:], func(_ context.Context, a *app) { a.now = func() time.Time { return begun } }))
	}
	os.Exit(prepared(os.Args[1:], func(ctx context.Context, a *app) {
		m := &moments{at: at, come: func() {
			fmt.Fprintln(os.NewFile(momentFD, "moment"))
			if os.Getenv(goesOnVariable) == "" {
				<-ctx.Done()
			}
		}}
		a.out, a.err, a.now = m.writer(a.out), m.writer(a.err), func() time.Time { m.pass(); return time.Now() }
	}))
}

// moments counts those of a program: what it prints, what it logs, when it looks at the clock to show how far it is.
type moments struct {
	passed atomic.Int64
	at     int64
	come   func()
}

func (m *moments) pass() {
	if m.passed.Add(1) == m.at {
		m.come()
	}
}

func (m *moments) writer(w io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) { m.pass(); return w.Write(p) })
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// TestInterrupt sends SIGINT to the program at moments of what takes long: it ends with 130 and says so. A moment is a place in
// the program's work, whenever the machine comes to it.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can send Ctrl-C to another one here")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	leat := filepath.Join(dir, "leat") // by this name the test is the program
	if err := os.Symlink(self, leat); err != nil {
		t.Fatal(err)
	}
	book := filepath.Join(dir, "book.txt")
	if err := os.WriteFile(book, []byte(strings.Repeat("Once upon a time there was a little dog named Spot. ", 400)), 0o644); err != nil {
		t.Fatal(err)
	}
	large, pack := filepath.Join(dir, "large.gguf"), filepath.Join(dir, "pack")
	if err := synthetic.Write(large, synthetic.Options{Arch: "qwen2", Preset: "0.5b", Hollow: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := decompose.Run(t.Context(), large, pack, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	device := os.Getenv("LEAT_REQUIRE_DEVICE") == "1" || hasDevice()
	for _, c := range []struct {
		args   string
		device bool
		least  int // moments that it has, if it is let
	}{
		{"run demo --raw -p Once -n 4000 --ctx 900 --vram 5MiB --ram 1KiB", true, 40},
		{"run demo --raw -f " + book + " -n 10 --ctx 8000 --temp 0", true, 12},
		{"perplexity demo -f " + book, true, 12},
		{"plan demo --again", true, 2},
		{"doctor --disk " + dir, true, 8},
		{"eval demo --ctx 700 --tokens " + strings.Repeat("5,", 600) + "5", true, 12},
		{"decompose " + large + " " + out + " --verify", false, 12},
		{"verify " + pack, false, 12},
	} {
		if c.device && !device {
			continue
		}
		args := strings.Fields(c.args)
		interrupt(t, leat, args, 1+rand.IntN(c.least), false)
		if !testing.Short() {
			interrupt(t, leat, args, c.least, false)
			interrupt(t, leat, args, 1+rand.IntN(c.least), true)
		}
		os.RemoveAll(out)
		os.RemoveAll(out + ".partial")
	}
}

// interrupt runs the program and stops it at a moment of its work. If it goes on meanwhile, it may be done before it notices.
func interrupt(t *testing.T, leat string, args []string, moment int, goesOn bool) {
	t.Helper()
	come, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer come.Close()
	cmd := exec.CommandContext(await.Context(t), leat, append(args, "-v")...)
	cmd.Env = append(os.Environ(), momentVariable+"="+strconv.Itoa(moment))
	if goesOn {
		cmd.Env = append(cmd.Env, goesOnVariable+"=1")
	}
	cmd.ExtraFiles = []*os.File{tell}
	var errw bytes.Buffer
	cmd.Stderr = &errw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tell.Close()
	name := fmt.Sprintf("leat %.60s, interrupted at moment %d", strings.Join(args, " "), moment)
	if _, err := come.Read(make([]byte, 1)); err != nil {
		t.Errorf("%s: ended before: %v, %s", name, cmd.Wait(), errw.String())
		return
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	err = cmd.Wait()
	t.Logf("%s: %v", name, cmd.ProcessState)
	if cmd.ProcessState.ExitCode() == exitInterrupted && strings.Contains(errw.String(), "leat: interrupted\n") {
		return
	}
	if !goesOn || err != nil {
		t.Errorf("%s: %v, %s", name, cmd.ProcessState, errw.String())
	}
}
