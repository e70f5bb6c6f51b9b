package calibrate

import (
	"context"
	"errors"
	"testing"
	"time"

	"leat/vk"
	"leat/vk/vktest"
)

// A submission that nobody waits for any more is over when submit returns: on lavapipe,
// freeing what it used took the process down.
func TestSubmitCanceled(t *testing.T) {
	dev := vktest.Open(t)
	b, err := dev.NewBuffer("much to fill", 64<<20, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.submit(ctx, func(cb *vk.CommandBuffer) error {
		for range 8 {
			cb.Fill(b, 0, b.Bytes, 1)
		}
		return nil
	})
	if now, e := r.done.Value(); e != nil || now != r.ticket || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("submit returned %v with the device at %d of %d, %v", err, now, r.ticket, e)
	}
	r.close()
	b.Close()
}

// A GPU that has rested works before it is timed, one that is at work already, or a CPU, doesn't.
func TestWarm(t *testing.T) {
	dev := vktest.Open(t)
	b, err := dev.NewBuffer("much to fill", 64<<20, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := newRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	was := *dev.Physical
	defer func() { *dev.Physical = was }()
	for _, c := range []struct {
		device vk.DeviceType
		ended  time.Time
		works  bool
	}{
		{vk.Discrete, time.Time{}, true},
		{vk.Integrated, time.Now().Add(-time.Hour), true},
		{vk.Discrete, time.Now().Add(time.Hour), false},
		{vk.CPU, time.Time{}, false},
	} {
		before := r.ticket
		dev.Physical.Type, r.ended = c.device, c.ended
		err := r.warm(t.Context(), func(cb *vk.CommandBuffer, times int) error {
			for range times {
				cb.Fill(b, 0, b.Bytes, 1)
			}
			return nil
		})
		if err != nil || (r.ticket > before+1) != c.works {
			t.Errorf("%v, at work until %v: %d submissions, %v", c.device, c.ended, r.ticket-before, err)
		}
	}
}
