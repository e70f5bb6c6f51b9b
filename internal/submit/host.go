package submit

import (
	"context"
	"time"

	"leat/internal/trace"
)

// Host is the host's part of a step: it records, or waits.
type Host struct {
	q     *Queue
	since time.Time // it records since then
}

// Resume begins a stretch of recording, Pause ends it: the host is about to wait.
func (h *Host) Resume() { h.since = time.Now() }

// Pause ends a stretch of recording.
func (h *Host) Pause() {
	q, now := h.q, time.Now()
	q.count.record.Add(int64(now.Sub(h.since)))
	if c := &q.Commands; q.Trace != nil {
		q.Trace.Add(trace.Span{Lane: trace.Host, Name: q.clock.name(c.at, c.at), Step: c.step}, h.since, now)
	}
}

// Blocked runs wait, which waits for bytes, outside of the time of recording, and returns how long that was.
func (h *Host) Blocked(wait func(ctx context.Context) error) (time.Duration, error) {
	from := time.Now()
	h.Pause()
	err := wait(h.q.Commands.ctx)
	h.Resume()
	return h.since.Sub(from), err
}

// Await waits until the device has come to a value.
func (h *Host) Await(value uint64) error {
	h.Pause()
	defer h.Resume()
	return h.q.Compute.Wait(h.q.Commands.ctx, value)
}

// To be woken takes a host longer than a GPU takes for a layer of one row. So where it has something to do at once, it polls the device,
// with Options.Listen.
const (
	pollFor   = 300 * time.Microsecond // before it sleeps
	wakeEarly = 200 * time.Microsecond // before the expected end of a step
	pollFirst = 4 * time.Millisecond   // for a step of which nothing is known: longer ones lose little by the host's sleep
)

// Hear is Await where the host has something to do at once.
func (h *Host) Hear(value uint64) error {
	h.Pause()
	defer h.Resume()
	return h.poll(h.q.Commands.ctx, value, pollFor)
}

// ended waits for the end of the step. One that was submitted again takes as long as the one before, and the device then has nothing to do
// until the host has heard of it.
func (h *Host) ended() error {
	q, ctx, a := h.q, context.Background(), &h.q.again
	if !a.now || !q.Listen {
		return q.Compute.Wait(ctx, q.value)
	}
	from, long := q.Commands.list[0].submitted, pollFirst
	if a.took > 0 {
		if err := q.Compute.WaitUntil(ctx, q.value, from.Add(a.took-wakeEarly)); err != nil {
			return err
		}
		long = wakeEarly + pollFor
	}
	if err := h.poll(ctx, q.value, long); err != nil {
		return err
	}
	a.took = time.Since(from)
	return nil
}

// poll looks for so long whether the device has come to a value, then sleeps until it has.
func (h *Host) poll(ctx context.Context, value uint64, long time.Duration) error {
	q := h.q
	if q.Listen {
		for from := time.Now(); time.Since(from) < long; {
			if now, err := q.Compute.Value(); err != nil || now >= value {
				return err
			}
		}
	}
	return q.Compute.Wait(ctx, value)
}
