package await

import (
	"context"
	"runtime"
	"testing"
	"time"
)

const (
	grace = 15 * time.Second // before the binary's deadline, to say what was waited for
	poll  = 2 * time.Millisecond
)

// Context ends shortly before the deadline of t's binary. A wait under it that never ends becomes a failure of the test that
// waits, not a panic of the binary.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx := t.Context()
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return ctx
	}
	at, ok := d.Deadline()
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, at.Add(-grace))
	t.Cleanup(cancel)
	return ctx
}

// Until returns once state reports true. It asks again and again, from the test's goroutine.
func Until(t testing.TB, what string, state func() bool) {
	t.Helper()
	ctx := Context(t)
	for !state() {
		if ctx.Err() != nil {
			t.Fatalf("waited for %s until the test's deadline\n%s", what, stacks())
		}
		time.Sleep(poll)
	}
}

// Receive returns the next value of c, or the zero value once c is closed.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-Context(t).Done():
		t.Fatalf("waited for %s until the test's deadline\n%s", what, stacks())
		panic("not reached")
	}
}

// Goroutines returns once no more goroutines run than before.
func Goroutines(t testing.TB, before int) {
	t.Helper()
	Until(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// Impatient is a context that is canceled as soon as someone waits for its end.
func Impatient(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &impatient{ctx, cancel}
}

type impatient struct {
	context.Context
	cancel func()
}

func (i *impatient) Done() <-chan struct{} {
	defer i.cancel()
	return i.Context.Done()
}
