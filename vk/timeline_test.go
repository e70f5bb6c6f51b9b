package vk_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"leat/vk"
	"leat/vk/vktest"
)

func TestBuffer(t *testing.T) {
	r := newRig(t)
	for _, c := range []vk.MemoryClass{vk.DeviceLocal, vk.Upload, vk.Readback} {
		t.Run(c.String(), func(t *testing.T) {
			const n = 100_001
			b := r.buffer("one", n, c)
			if b.Address == 0 || b.Bytes != n || b.AllocBytes < n {
				t.Errorf("address %#x, %d bytes, %d allocated", b.Address, b.Bytes, b.AllocBytes)
			}
			if want, err := r.dev.BufferBytes(n, c); err != nil || want != b.AllocBytes {
				t.Errorf("BufferBytes says %d, %v; it took %d", want, err, b.AllocBytes)
			}
			m := b.Mapped()
			if c == vk.DeviceLocal {
				if m != nil {
					t.Error("device-local memory is mapped")
				}
				return
			}
			if len(m) != n {
				t.Fatalf("%d bytes are mapped, want %d", len(m), n)
			}
			for i := range m {
				m[i] = byte(i * 7)
			}
			back := r.buffer("back", n, vk.Readback)
			r.run(func(c *vk.CommandBuffer) {
				c.Copy(back, 0, b, 0, n)
				c.HostBarrier()
			})
			if !bytes.Equal(back.Mapped(), m) {
				t.Error("the copy differs")
			}
		})
	}
}

func TestBufferErrors(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name  string
		bytes int64
		class vk.MemoryClass
		is    error
	}{
		{"nothing", 0, vk.Upload, nil},
		{"less than nothing", -1, vk.Upload, nil},
		{"no such class", 64, 7, nil},
		{"more than there is", 1 << 45, vk.DeviceLocal, vk.ErrOutOfDeviceMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.dev.NewBuffer("hopeless", c.bytes, c.class)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v", err, c.is)
			}
		})
	}
}

func TestTimeline(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	value := func() uint64 {
		v, err := r.timeline.Value()
		r.ok(err)
		return v
	}
	if v := value(); v != 0 {
		t.Fatalf("it starts at %d", v)
	}
	r.ok(r.timeline.Signal(3))
	r.ok(r.timeline.Wait(ctx, 2))
	if v := value(); v != 3 {
		t.Errorf("it stands at %d, want 3", v)
	}
	// A submission without commands, waiting for the host.
	r.ok(r.dev.Compute.Submit(vk.Submission{
		Waits:   []vk.Point{{Timeline: r.timeline, Value: 4}},
		Signals: []vk.Point{{Timeline: r.timeline, Value: 5}},
	}))
	if v := value(); v != 3 {
		t.Errorf("it stands at %d before the host's signal, want 3", v)
	}
	r.ok(r.timeline.Signal(4))
	r.ok(r.timeline.Wait(ctx, 5))
}

// onWait has do run once, when the host begins to wait for the device.
func onWait(do func()) vktest.Option {
	var once sync.Once
	return vktest.Watch(func(call string) vk.Result {
		if call == "vkWaitSemaphores" {
			once.Do(do)
		}
		return 0
	})
}

func TestTimelineContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t, onWait(cancel))
	if err := r.timeline.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("wait ended with %v, want Canceled", err)
	}
	r.ok(r.timeline.Signal(1))
	r.ok(r.timeline.Wait(ctx, 1)) // it is there, whatever ctx says
	if err := r.timeline.Wait(ctx, math.MaxUint64); !errors.Is(err, context.Canceled) {
		t.Errorf("wait ended with %v, want Canceled", err)
	}
}

// WaitUntil gives up at its time, and not before what it waits for.
func TestTimelineUntil(t *testing.T) {
	var line *vk.Timeline
	d := vktest.Open(t, onWait(func() { go line.Signal(2) }))
	line, err := d.NewTimeline("until")
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	if err := line.WaitUntil(t.Context(), 1, time.Now()); err != nil {
		t.Errorf("a time that is over: %v", err)
	}
	if now, err := line.Value(); err != nil || now != 0 {
		t.Errorf("at %d, %v, before anything waits", now, err)
	}
	if err := line.WaitUntil(t.Context(), 2, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if now, err := line.Value(); err != nil || now != 2 {
		t.Errorf("came back at %d: %v, want 2", now, err)
	}
	soon := time.Now().Add(time.Millisecond) // some waits in the driver, or none on a slow machine
	if err := line.WaitUntil(t.Context(), 3, soon); err != nil || time.Now().Before(soon) {
		t.Errorf("gave up %v before its time: %v", time.Until(soon), err)
	}
}

// Both queues write one buffer in turn, waiting for each other in both
// directions; the buffer has no owner to be handed over.
func TestBothQueues(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []vktest.Option
	}{{"as it is", nil}, {"one queue", []vktest.Option{vktest.OneQueue()}}} {
		t.Run(c.name, func(t *testing.T) { bothQueues(newRig(t, c.options...)) })
	}
}

func bothQueues(r *rig) {
	const n, rounds = 1 << 14, 8
	t := r.t
	pool, err := r.dev.Transfer.NewCommandPool()
	r.ok(err)
	t.Cleanup(pool.Close)
	uploads, err := r.dev.NewTimeline("uploads")
	r.ok(err)
	t.Cleanup(uploads.Close)
	src, ring := r.buffer("staging", n*rounds, vk.Upload), r.buffer("ring", n, vk.DeviceLocal)
	back := r.buffer("back", n*rounds, vk.Readback)
	for i := range src.Mapped() {
		src.Mapped()[i] = byte(i>>14*31 + i)
	}
	computePool, err := r.dev.Compute.NewCommandPool()
	r.ok(err)
	t.Cleanup(computePool.Close)
	// r.timeline counts the reads of ring; round k overwrites it after read k-1.
	for k := range int64(rounds) {
		up, err := pool.New()
		r.ok(err)
		r.ok(up.Begin())
		up.Copy(ring, 0, src, k*n, n)
		r.ok(up.End())
		r.ok(r.dev.Transfer.Submit(vk.Submission{
			Commands: []*vk.CommandBuffer{up},
			Waits:    []vk.Point{{Timeline: r.timeline, Value: uint64(k)}},
			Signals:  []vk.Point{{Timeline: uploads, Value: uint64(k + 1)}},
		}))
		use, err := computePool.New()
		r.ok(err)
		r.ok(use.Begin())
		use.Copy(back, k*n, ring, 0, n)
		use.HostBarrier()
		r.ok(use.End())
		r.ok(r.dev.Compute.Submit(vk.Submission{
			Commands: []*vk.CommandBuffer{use},
			Waits:    []vk.Point{{Timeline: uploads, Value: uint64(k + 1)}},
			Signals:  []vk.Point{{Timeline: r.timeline, Value: uint64(k + 1)}},
		}))
	}
	r.ok(r.timeline.Wait(context.Background(), rounds))
	if !bytes.Equal(back.Mapped(), src.Mapped()) {
		t.Error("what came through the ring differs")
	}
}
