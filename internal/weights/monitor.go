package weights

import (
	"context"
	"errors"
	"sync"
)

// monitor is the lock of what a store's goroutines share, with a condition to wait for changes. Every wait ends with the store's first failure since
// the last replan.
type monitor struct {
	mu      sync.Mutex // the lock
	changed *sync.Cond // broadcast after each change that a goroutine may wait for
	err     error      // the first failure of loading since the last replan
	closing bool       // the store is being closed
	pausing bool       // the loading goroutines are being stopped: their failures are ignored
}

// errClosing ends the waits of a store that is being closed.
var errClosing = errors.New("the weights are closed")

// wait waits, under the lock, until met reports true, ctx ends, or the store fails or closes. A ctx that ends must be followed by a call of wake.
func (m *monitor) wait(ctx context.Context, met func() bool) error {
	for !m.closing {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case met():
			return nil
		case m.err != nil:
			return m.err
		}
		m.changed.Wait()
	}
	return errClosing
}

// wake lets all waits look at their conditions and contexts again.
func (m *monitor) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed.Broadcast()
}

// fail keeps err if it is the store's first failure, and ends all waits with the first. During a pause it only wakes the waits.
func (m *monitor) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil && !m.pausing {
		m.err = err
	}
	m.changed.Broadcast()
}

// failed reports whether loading, or the last replan, has failed: then waits end with that error until a replan succeeds.
func (m *monitor) failed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err != nil
}

// close ends all waits, those to come too, with errClosing.
func (m *monitor) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closing = true
	m.changed.Broadcast()
}

// pause makes fail ignore errors until [monitor.resume]: reads and uploads that fail while loading is being stopped are tried again afterwards.
func (m *monitor) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausing = true
}

// resume ends a pause, and sets the error that ends all waits; nil: waits go on.
func (m *monitor) resume(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausing, m.err = false, err
}
