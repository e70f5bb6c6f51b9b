package limit

import (
	"context"
	"sync"
	"time"
)

// slack is how late a waiter may come and still find its turn: timers are not exact, and what
// each loses would be missing from the rate.
const slack = 5 * time.Millisecond

// Rate lets bytes pass at a rate, as if one after the other through a pipe. A nil Rate
// holds nothing up. Its methods are safe for use by several goroutines.
type Rate struct {
	perSec float64
	now    func() time.Time

	mu     sync.Mutex
	free   time.Time // when the pipe is empty
	passed int64
}

// New makes a Rate of bytes a second; nil where that is 0 or less.
func New(bytesPerSec float64) *Rate {
	if bytesPerSec <= 0 {
		return nil
	}
	return &Rate{perSec: bytesPerSec, now: time.Now}
}

// Wait returns when n more bytes would have come through, or when ctx is done.
func (r *Rate) Wait(ctx context.Context, n int64) error {
	if r == nil || n <= 0 {
		return ctx.Err()
	}
	return sleep(ctx, r.take(n))
}

// take sends n bytes into the pipe and says how long it takes until they are through.
func (r *Rate) take(n int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if late := now.Add(-slack); r.free.Before(late) {
		r.free = late
	}
	r.passed += n
	r.free = r.free.Add(time.Duration(float64(n) / r.perSec * float64(time.Second)))
	return max(0, r.free.Sub(now))
}

// Passed counts the bytes that were let through, or are about to be.
func (r *Rate) Passed() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
