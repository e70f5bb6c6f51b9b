package submit

import (
	"context"
	"time"

	"leat/internal/trace"
)

// Host waits for the device, and measures for counters and trace the time that the host spends recording, not waiting.
type Host struct {
	q     *Queue    // the queue that this Host is a field of
	since time.Time // start of the current stretch of recording
}

// Resume begins a stretch of recording.
func (h *Host) Resume() { h.since = time.Now() }

// Pause ends a stretch of recording, before the host waits: it counts and traces the stretch.
func (h *Host) Pause() {
	q, now := h.q, time.Now()
	q.count.record.Add(int64(now.Sub(h.since)))
	if c := &q.Commands; q.Trace != nil {
		q.Trace.Add(trace.Span{Lane: trace.Host, Name: q.clock.name(c.lastPart, c.lastPart), Step: c.step}, h.since, now)
	}
}

// TimedWait calls wait, which waits for bytes, with the step's context and outside of recording time, and returns how long it took.
func (h *Host) TimedWait(wait func(ctx context.Context) error) (time.Duration, error) {
	from := time.Now()
	h.Pause()
	err := wait(h.q.Commands.ctx)
	h.Resume()
	return h.since.Sub(from), err
}

// Await sleeps until the compute timeline has reached value, or the step's context is done.
func (h *Host) Await(value uint64) error {
	h.Pause()
	defer h.Resume()
	return h.q.Compute.Wait(h.q.Commands.ctx, value)
}

// Waking a sleeping thread takes longer than a GPU takes for a layer of one row. If the host has work to do as soon as the device is done,
// it polls the timeline first, with Options.Poll.
const (
	pollFor   = 300 * time.Microsecond // time to poll before the host sleeps
	wakeEarly = 200 * time.Microsecond // the host starts to poll this long before the expected end of a step
	pollFirst = 4 * time.Millisecond   // time to poll for a step of unknown length; a longer step loses little to a sleep
)

// AwaitPolling is Await with less delay, for a host that has work to do as soon as the wait ends: with Options.Poll it polls before it sleeps.
func (h *Host) AwaitPolling(value uint64) error {
	h.Pause()
	defer h.Resume()
	return h.poll(h.q.Commands.ctx, value, pollFor)
}

// awaitEnd waits for the end of the step. A step that [Queue.Repeat] submitted takes as long as the last time, so the host sleeps until shortly
// before its end, then polls: the device is idle until the host submits the next step.
func (h *Host) awaitEnd() error {
	q, ctx, a := h.q, context.Background(), &h.q.keptStep
	if !a.repeating || !q.Poll {
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

// poll waits until the compute timeline has reached value: with Options.Poll it polls for the duration long, then it sleeps.
func (h *Host) poll(ctx context.Context, value uint64, long time.Duration) error {
	q := h.q
	if q.Poll {
		for from := time.Now(); time.Since(from) < long; {
			if now, err := q.Compute.Value(); err != nil || now >= value {
				return err
			}
		}
	}
	return q.Compute.Wait(ctx, value)
}
