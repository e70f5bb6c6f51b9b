package calibrate

import (
	"context"
	"errors"
	"time"

	"leat/vk"
)

// runner submits single command buffers to the compute queue and waits for them.
type runner struct {
	dev    *vk.Device
	pool   *vk.CommandPool
	cb     *vk.CommandBuffer
	done   *vk.Timeline
	ticket uint64
	ended  time.Time // of the last submission
}

// A GPU's clock rises from a fifth under load, and falls again at rest.
const (
	warmTime = 400 * time.Millisecond // of work, before what is timed
	coolTime = 200 * time.Millisecond // that a clock stays up
)

// warm keeps a GPU busy with what record records until its clock has risen, if it has rested.
func (r *runner) warm(ctx context.Context, record func(cb *vk.CommandBuffer, times int) error) error {
	if r.dev.Physical.Type == vk.CPU || time.Since(r.ended) < coolTime {
		return nil
	}
	var busy time.Duration
	for n, times := 0, 1; n < 2 || busy < warmTime; n++ {
		took, err := r.submit(ctx, func(cb *vk.CommandBuffer) error { return record(cb, times) })
		if err != nil {
			return err
		}
		busy += took
		if took < warmTime/10 {
			times *= 2
		}
	}
	return nil
}

func newRunner(dev *vk.Device) (*runner, error) {
	r := &runner{dev: dev}
	var err error
	if r.pool, err = dev.Compute.NewCommandPool(); err == nil {
		if r.cb, err = r.pool.New(); err == nil {
			r.done, err = dev.NewTimeline("calibrate")
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runner) close() {
	if r.pool != nil {
		r.pool.Close()
	}
	if r.done != nil {
		r.done.Close()
	}
}

// submit returns the time from the submission to its end. It returns after that also
// where ctx ends before: what the device reads may be freed then.
func (r *runner) submit(ctx context.Context, record func(*vk.CommandBuffer) error, waits ...vk.Point) (time.Duration, error) {
	if err := r.record(record); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := r.hand(waits...); err != nil {
		return 0, err
	}
	err := r.wait(ctx)
	r.ended = time.Now()
	return r.ended.Sub(start), err
}

func (r *runner) record(record func(*vk.CommandBuffer) error) error {
	if err := r.cb.Begin(); err != nil {
		return err
	}
	if err := record(r.cb); err != nil {
		return err
	}
	return r.cb.End()
}

// hand submits what is recorded; [runner.wait] or [runner.hear] waits for it.
func (r *runner) hand(waits ...vk.Point) error {
	r.ticket++
	return r.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{r.cb}, Waits: waits, Signals: []vk.Point{{Timeline: r.done, Value: r.ticket}}})
}

func (r *runner) wait(ctx context.Context) error {
	err := r.done.Wait(ctx, r.ticket)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(r.done.Wait(context.WithoutCancel(ctx), r.ticket), err)
	}
	return err
}

// hear is wait as a step does where the device needs the host at once: it looks again and again. Where the device is the
// CPU itself, that would only hold it up.
func (r *runner) hear(ctx context.Context) error {
	const listening = time.Millisecond
	if r.dev.Physical.Type != vk.CPU {
		for from := time.Now(); time.Since(from) < listening; {
			if now, err := r.done.Value(); err != nil || now >= r.ticket {
				return err
			}
		}
	}
	return r.wait(ctx)
}

// repeat gives the time of one of what record records, from submissions long enough that
// the way to the device and back counts for nothing, short enough for any watchdog.
func (r *runner) repeat(ctx context.Context, record func(cb *vk.CommandBuffer, times int) error) (best time.Duration, err error) {
	const long = 50 * time.Millisecond
	times := 1
	for i := range 5 { // the first also builds the pipeline
		took, err := r.submit(ctx, func(cb *vk.CommandBuffer) error { return record(cb, times) })
		if err != nil {
			return 0, err
		}
		one := max(1, took/time.Duration(times))
		if best == 0 || one < best {
			best = one
		}
		if i > 0 && one > long { // a slow device's clock is exact enough
			break
		}
		times = int(min(max(1, long/one), 1000))
	}
	return best, nil
}
