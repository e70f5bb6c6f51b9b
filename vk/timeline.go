package vk

import (
	"context"
	"fmt"
	"math"
	"time"

	"leat/vk/internal/raw"
)

// Timeline is a counter that queues and the host wait for and raise. Its
// methods are safe for use by several goroutines.
type Timeline struct {
	Name   string
	what   string // "timeline name", for errors
	dev    *Device
	handle raw.Semaphore
}

// waitSlice is how long a wait stays in the driver before it looks at its
// context again. A step of a streamed model waits for most of a second.
const waitSlice = 50 * time.Millisecond

// waitBlock is what the driver reads and writes during a call; pooled, as
// every step waits.
type waitBlock struct {
	info   raw.SemaphoreWaitInfo
	signal raw.SemaphoreSignalInfo
	handle raw.Semaphore
	value  uint64
}

// NewTimeline makes a timeline that stands at zero.
func (d *Device) NewTimeline(name string) (*Timeline, error) {
	t := &Timeline{Name: name, what: "timeline " + name, dev: d}
	info := &raw.SemaphoreCreateInfo{
		SType: raw.StructureTypeSemaphoreCreateInfo,
		PNext: raw.Ptr(&raw.SemaphoreTypeCreateInfo{
			SType:         raw.StructureTypeSemaphoreTypeCreateInfo,
			SemaphoreType: raw.SemaphoreTypeTimeline,
		}),
	}
	if err := d.call("vkCreateSemaphore", t.what, func() Result { return d.fn.CreateSemaphore(d.handle, info, nil, &t.handle) }); err != nil {
		return nil, err
	}
	d.nameObject(raw.ObjectTypeSemaphore, uint64(t.handle), name)
	d.adopt(t)
	return t, nil
}

// Value is where the timeline stands.
func (t *Timeline) Value() (uint64, error) {
	b := t.dev.waits.Get().(*waitBlock)
	defer t.dev.waits.Put(b)
	return t.value(b)
}

func (t *Timeline) value(b *waitBlock) (uint64, error) {
	err := t.dev.call("vkGetSemaphoreCounterValue", t.what, func() Result {
		r := t.dev.fn.GetSemaphoreCounterValue(t.dev.handle, t.handle, &b.value)
		if r >= 0 && b.value == math.MaxUint64 { // so drivers show a lost device; no one counts that far
			r = ErrDeviceLost
		}
		return r
	})
	return b.value, err
}

// Wait returns when the timeline has reached v, when ctx is done, or when the
// device is lost.
func (t *Timeline) Wait(ctx context.Context, v uint64) error {
	return t.wait(ctx, v, func() time.Duration { return waitSlice })
}

// WaitUntil is Wait, but returns at a time at the latest.
func (t *Timeline) WaitUntil(ctx context.Context, v uint64, at time.Time) error {
	return t.wait(ctx, v, func() time.Duration { return min(waitSlice, time.Until(at)) })
}

// wait returns as well when left, which says how long to stay in the driver, has nothing left.
func (t *Timeline) wait(ctx context.Context, v uint64, left func() time.Duration) error {
	b := t.dev.waits.Get().(*waitBlock)
	defer t.dev.waits.Put(b)
	for {
		// Polling is several times quicker than sleeping where the value is there already.
		now, err := t.value(b)
		if err != nil || now >= v {
			return err
		}
		slice := left()
		if slice <= 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for timeline %s to reach %d, at %d: %w", t.Name, v, now, err)
		}
		b.handle, b.value = t.handle, v
		b.info = raw.SemaphoreWaitInfo{
			SType:          raw.StructureTypeSemaphoreWaitInfo,
			SemaphoreCount: 1,
			PSemaphores:    &b.handle,
			PValues:        &b.value,
		}
		err = t.dev.call("vkWaitSemaphores", t.what, func() Result {
			return t.dev.fn.WaitSemaphores(t.dev.handle, &b.info, uint64(slice))
		})
		if err != nil {
			return err
		}
	}
}

// Signal raises the timeline to v from the host.
func (t *Timeline) Signal(v uint64) error {
	b := t.dev.waits.Get().(*waitBlock)
	defer t.dev.waits.Put(b)
	b.signal = raw.SemaphoreSignalInfo{SType: raw.StructureTypeSemaphoreSignalInfo, Semaphore: t.handle, Value: v}
	return t.dev.call("vkSignalSemaphore", t.what, func() Result { return t.dev.fn.SignalSemaphore(t.dev.handle, &b.signal) })
}

// Close ends the use of the timeline. No submission that names it may be running.
func (t *Timeline) Close() { t.dev.release(t) }

func (t *Timeline) label() string { return "timeline " + t.Name }

// destroy leaves the semaphore to the next WaitIdle. By the letter it could go
// as soon as its last signal was seen, but lavapipe's queue thread (Mesa 22.3)
// unlocks it after that signal, and hangs if it is gone.
func (t *Timeline) destroy() {
	d := t.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children.dying = append(d.children.dying, t.handle)
}
