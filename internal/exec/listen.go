package exec

import (
	"context"
	"time"
)

// To be woken takes a host longer than a GPU takes for a layer of one row. So where it has something to do at once, it looks again and
// again whether the device has come to a value, where it listens.
const (
	listening = 300 * time.Microsecond // before it sleeps until then
	early     = 200 * time.Microsecond // so long before the end of a step it is awake
	strange   = 4 * time.Millisecond   // it listens to a step of which it knows nothing: longer ones lose little by its sleep
)

// hear is await where the host has something to do at once.
func (r *run) hear(value uint64) error {
	r.pause()
	defer r.resume()
	return r.listen(r.ctx, value, listening)
}

// ended waits for the end of the step. One that was submitted again takes as long as the one before, and the device then has nothing to do
// until the host has heard of it.
func (r *run) ended() error {
	e, ctx := r.e, context.Background()
	if !r.resubmitted || !e.Listens {
		return e.Compute.Wait(ctx, e.value)
	}
	from, long := r.timed[0].submitted, strange
	if e.replay.took > 0 {
		if err := e.Compute.WaitUntil(ctx, e.value, from.Add(e.replay.took-early)); err != nil {
			return err
		}
		long = early + listening
	}
	if err := r.listen(ctx, e.value, long); err != nil {
		return err
	}
	e.replay.took = time.Since(from)
	return nil
}

// listen looks for so long whether the device has come to a value, then sleeps until it has.
func (r *run) listen(ctx context.Context, value uint64, long time.Duration) error {
	e := r.e
	if e.Listens {
		for from := time.Now(); time.Since(from) < long; {
			if now, err := e.Compute.Value(); err != nil || now >= value {
				return err
			}
		}
	}
	return e.Compute.Wait(ctx, value)
}
