package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"leat/decompose"
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
			a.exit = func(n int) { code = n }
			a.patience = func() <-chan time.Time {
				a.ended.Store(c.over)
				now := make(chan time.Time)
				close(now)
				return now
			}
			ctx, back := t.Context(), func() {}
			if c.own {
				ctx, back = a.ownInterrupt(ctx)
			}
			a.lastResort()
			if got := code == exitInterrupted && errw.String() == "leat: interrupted\n"; got != c.want {
				t.Errorf("exit code %d, %q", code, errw.String())
			}
			if ctx.Err() != nil {
				t.Error("the command's own context has ended")
			}
			back()
			if a.ownInterrupts.Load() {
				t.Error("Ctrl-C is still the conversation's")
			}
		})
	}
}

// TestInterrupt sends SIGINT to the program at random moments of what takes long: it ends
// with 130 and says so. How soon is in the log; what is held against it is generous.
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
	commands := []struct {
		args   string
		device bool
	}{
		{"run demo --raw -p Once -n 4000 --ctx 900 --vram 5MiB --ram 1KiB", true},
		{"run demo --raw -f " + book + " -n 10 --ctx 8000 --temp 0", true},
		{"perplexity demo -f " + book, true},
		{"plan demo --again", true},
		{"doctor --full --disk " + dir, true},
		{"eval demo --ctx 700 --tokens " + strings.Repeat("5,", 600) + "5", true},
		{"decompose " + large + " " + out + " --verify", false},
		{"verify " + pack, false},
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	device := os.Getenv("LEAT_REQUIRE_DEVICE") == "1" || hasDevice()
	for _, c := range commands {
		if c.device && !device {
			continue
		}
		met, most := 0, 1500*time.Millisecond
		for tries := 0; met < rounds && tries < 8*rounds; tries++ {
			if interrupt(t, leat, strings.Fields(c.args), time.Duration(rng.Int64N(int64(most)))) {
				met++
			} else {
				most = max(most*2/3, 50*time.Millisecond) // it was over already, or not begun
			}
			os.RemoveAll(out)
			os.RemoveAll(out + ".partial")
		}
		if met == 0 {
			t.Errorf("leat %.40s: no interrupt met it at work", c.args)
		}
	}
}

// bySIGINT tells that death from any other: a crash is a signal, too.
func bySIGINT(p *os.ProcessState) bool {
	s, ok := p.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGINT
}

// interrupt runs the program, stops it after a while, and says whether it was at work then.
func interrupt(t *testing.T, leat string, args []string, after time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, leat, args...)
	var errw bytes.Buffer
	cmd.Stderr = &errw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	err := cmd.Wait()
	took := time.Since(begin)
	code := cmd.ProcessState.ExitCode()
	t.Logf("%s after %v: %v in %v", args[0], after, cmd.ProcessState, took.Round(time.Millisecond))
	switch {
	case code == exitInterrupted && strings.Contains(errw.String(), "leat: interrupted\n"):
		return true
	case ctx.Err() != nil:
		t.Errorf("leat %.60s, interrupted after %v, did not end", strings.Join(args, " "), after)
	case err == nil: // it was over already
	case bySIGINT(cmd.ProcessState): // before main began
	default:
		t.Errorf("leat %.60s, interrupted after %v: exit status %d, %s", strings.Join(args, " "), after, code, errw.String())
	}
	return false
}
