package decompose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"leat/decompose/pack"
)

// childMode as the first argument makes the test binary a process that decomposes, for a test to
// kill: MODE BYTES IN OUT, with which it kills itself in the middle of a write after so many bytes
// (never: -1).
const childMode = "decompose-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == childMode {
		os.Exit(child(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

func child(bytes, in, out string) int {
	left, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	h := defaultHooks()
	if left >= 0 {
		h = quick()
		var mu sync.Mutex
		h.write = func(f *os.File, p []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if int64(len(p)) > left {
				f.Write(p[:left])
				self, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = self.Kill()
				}
				if err != nil {
					return err
				}
				select {}
			}
			left -= int64(len(p))
			_, err := f.Write(p)
			return err
		}
	}
	o := Options{}
	if strings.HasSuffix(out, stripedSuffix) {
		o.Stripe, o.StripeBytes = []string{out + ".b", out + ".c"}, 2*pack.FileAlign
	}
	if _, err := run(context.Background(), in, out, o, h); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const stripedSuffix = "-striped" // of an OUTDIR: the child stripes it over two folders more

func startChild(t *testing.T, bytes int64, in, out string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, childMode, fmt.Sprint(bytes), in, out)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// killed tells a child that was killed from one that failed.
func killed(t *testing.T, err error) bool {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 1) {
		t.Fatalf("the child failed: %v", err)
	}
	return err != nil
}

// The process dies in the middle of a write, with no chance to tidy up; the next one finishes, and
// the pack is the very same.
func TestKilledAtAnyByte(t *testing.T) {
	x := newFixture(t, shape{layers: 3, dim: 256, experts: 2})
	for _, n := range x.points(20) {
		if err := startChild(t, n, x.in, x.out).Wait(); !killed(t, err) {
			t.Fatalf("after %d of %d bytes: the child lived", n, x.total)
		}
		if exists(x.out) {
			t.Fatalf("after %d of %d bytes: found the pack under its own name", n, x.total)
		}
		mustRun(t, x.in, x.out, Options{Verify: true}, quick())
		sameFiles(t, files(t, x.out), x.want)
		if err := os.RemoveAll(x.out); err != nil {
			t.Fatal(err)
		}
	}
}

// The same with a pack in three folders.
func TestKilledStriped(t *testing.T) {
	x := newFixture(t, shape{layers: 3, dim: 256, experts: 2})
	x.out += stripedSuffix
	o := Options{Verify: true, Stripe: []string{x.out + ".b", x.out + ".c"}, StripeBytes: 2 * pack.FileAlign}
	for _, n := range x.points(12) {
		if err := startChild(t, n, x.in, x.out).Wait(); !killed(t, err) {
			t.Fatalf("after %d of %d bytes: the child lived", n, x.total)
		}
		if exists(x.out) {
			t.Fatalf("after %d of %d bytes: found the pack under its own name", n, x.total)
		}
		mustRun(t, x.in, x.out, o, quick())
		sameStriped(t, x, o)
		for _, dir := range append(o.Stripe, x.out) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// kill -9 from outside at random times, over and over, on a model of 100 MB with all its syncs.
func TestKilledAtAnyTime(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some 100 MB several times")
	}
	x := newFixture(t, shape{layers: 10, dim: 2048})
	start := time.Now()
	kills, resumes := 0, 0
	for round := 0; round < 2 || (kills == 0 && round < 20); round++ {
		for try := 0; ; try++ {
			c := startChild(t, -1, x.in, x.out)
			if try < 12 { // then let it finish
				timer := time.AfterFunc(time.Duration(rand.Int64N(int64(400*time.Millisecond))), func() { c.Process.Kill() })
				defer timer.Stop()
			}
			if !killed(t, c.Wait()) {
				break
			}
			kills++
			if finished, _ := filepath.Glob(filepath.Join(x.out+pack.PartialSuffix, "*.bin")); len(finished) > 0 {
				resumes++
			}
			if whole(t, x) {
				break // it died in its very last step
			}
		}
		got := files(t, x.out)
		delete(got, journalName) // all that a kill after the renaming may leave
		sameFiles(t, got, x.want)
		if err := pack.Verify(context.Background(), x.out, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(x.out); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d of them with files to resume from, in %v", kills, resumes, time.Since(start).Round(time.Millisecond))
	if kills == 0 {
		t.Error("no child was killed before it finished")
	}
}

// whole reports whether the pack has its own name, which it gets as the last step only.
func whole(t *testing.T, x *fixture) bool {
	t.Helper()
	_, err := os.Stat(x.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
