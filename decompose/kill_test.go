package decompose

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"leat/decompose/pack"
)

// childMode as the first argument makes the test binary a process that decomposes, for a test to
// kill: MODE BYTES IN OUT, with which it kills itself in the middle of a write after so many bytes
// (never: -1). With outside before BYTES it says on stdout that it is there, and waits in that write.
const (
	childMode = "decompose-child"
	outside   = "outside:"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == childMode {
		os.Exit(decomposes(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

func decomposes(bytes, in, out string) int {
	bytes, waits := strings.CutPrefix(bytes, outside)
	left, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	h := defaultHooks()
	if !waits {
		h = quick()
	}
	if left >= 0 {
		h.write = endsAfter(left, func() {
			if waits {
				fmt.Println("here")
			} else if self, err := os.FindProcess(os.Getpid()); err == nil {
				self.Kill()
			}
			select {}
		})
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

// endsAfter writes, and calls end in the middle of the write that comes to so many bytes. Other writes go on.
func endsAfter(left int64, end func()) func(*os.File, []byte) error {
	var mu sync.Mutex
	return func(f *os.File, p []byte) error {
		mu.Lock()
		before := left
		left -= int64(len(p))
		mu.Unlock()
		if before >= 0 && before < int64(len(p)) {
			f.Write(p[:before])
			end()
		}
		_, err := f.Write(p)
		return err
	}
}

const stripedSuffix = "-striped" // of an OUTDIR: the child stripes it over two folders more

func child(t *testing.T, bytes, in, out string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, childMode, bytes, in, out)
	c.Stderr = os.Stderr
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
		if err := child(t, fmt.Sprint(n), x.in, x.out).Run(); !killed(t, err) {
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
		if err := child(t, fmt.Sprint(n), x.in, x.out).Run(); !killed(t, err) {
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

// kill -9 from outside in the middle of one write, whatever other goroutines do meanwhile, over and over, on a model of 100 MB
// with all its syncs.
func TestKilledFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some 100 MB several times")
	}
	x := newFixture(t, shape{layers: 10, dim: 2048})
	kills, resumes := 0, 0
	for range 2 {
		for try := 0; ; try++ {
			at := int64(-1)
			if try < 8 { // then let it finish
				at = 1 + rand.Int64N(x.total/4)
			}
			if !killed(t, killInWrite(t, at, x)) {
				break
			}
			kills++
			if finished, _ := filepath.Glob(filepath.Join(x.out+pack.PartialSuffix, "*.bin")); len(finished) > 0 {
				resumes++
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
	t.Logf("%d kills, %d of them with files to resume from", kills, resumes)
	if kills < 2 || resumes == 0 {
		t.Errorf("%d kills, %d of them with files to resume from", kills, resumes)
	}
}

// killInWrite kills a child once it says that a write of its own has come to so many bytes; one with less to write ends by itself.
func killInWrite(t *testing.T, bytes int64, x *fixture) error {
	t.Helper()
	c := child(t, outside+fmt.Sprint(bytes), x.in, x.out)
	said, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := said.Read(make([]byte, 1)); err == nil {
		c.Process.Kill()
	}
	return c.Wait()
}
