package calibrate

import (
	"context"
	"errors"
	"testing"

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
