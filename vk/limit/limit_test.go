package limit

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Bytes queue up behind each other, a waiter that comes a little late loses nothing, and an
// idle pipe saves no more than that up.
func TestTake(t *testing.T) {
	now := time.Unix(0, 0)
	r := New(1000)
	r.now = func() time.Time { return now }
	for _, step := range []struct {
		idle  time.Duration
		bytes int64
		want  time.Duration
	}{
		{0, 500, 500*time.Millisecond - slack},
		{0, 500, time.Second - slack}, // behind the first
		{900 * time.Millisecond, 100, 200*time.Millisecond - slack},
		{200*time.Millisecond - slack + time.Millisecond, 100, 99 * time.Millisecond}, // a millisecond late
		{time.Hour, 100, 100*time.Millisecond - slack},                                // no burst after a pause
		{0, 0, 100*time.Millisecond - slack},
	} {
		now = now.Add(step.idle)
		if got := r.take(step.bytes); got != step.want {
			t.Errorf("after %v, %d bytes take %v, wanted %v", step.idle, step.bytes, got, step.want)
		}
	}
}

func TestWait(t *testing.T) {
	var none *Rate
	if err := none.Wait(t.Context(), 1<<40); err != nil {
		t.Errorf("no limit: %v", err)
	}
	if r := New(0); r != nil {
		t.Errorf("a rate of 0 made a limit")
	}
	fast := New(1e12)
	for range 2 {
		if err := fast.Wait(t.Context(), 1000); err != nil {
			t.Errorf("a nanosecond: %v", err)
		}
	}
	if n := fast.Passed(); n != 2000 || none.Passed() != 0 {
		t.Errorf("%d bytes passed, wanted 2000; %d through no limit", n, none.Passed())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(1).Wait(ctx, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := none.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled, without a limit: %v", err)
	}
}
