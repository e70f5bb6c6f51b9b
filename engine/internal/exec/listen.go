package exec

import (
	"context"
	"time"

	"leat/vk"
)

// ended waits for the end of the step. One that was submitted again takes as long as the one before: the host sleeps until shortly
// before its end, then looks again and again, as the device has nothing to do until the host has heard of it.
func (r *run) ended() error {
	e, ctx := r.e, context.Background()
	if !r.resubmitted || e.Device.Physical.Type == vk.CPU {
		return e.Compute.Wait(ctx, e.value)
	}
	from := r.timed[0].submitted
	if asleep := e.replay.took - listening/2; asleep > 0 {
		if err := e.Compute.WaitUntil(ctx, e.value, from.Add(asleep)); err != nil {
			return err
		}
	}
	if err := r.listen(e.value); err != nil {
		return err
	}
	e.replay.took = time.Since(from)
	return nil
}

// listen looks for a while whether the device has come to a value before it sleeps until then.
func (r *run) listen(value uint64) error {
	for from := time.Now(); time.Since(from) < listening; {
		if now, err := r.e.Compute.Value(); err != nil || now >= value {
			return err
		}
	}
	return r.e.Compute.Wait(context.Background(), value)
}
