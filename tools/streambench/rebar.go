package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leat/vk"
	"leat/vk/mem"
)

// window is how much device memory the CPU writes, over and over.
const window = 512 << 20

// sweepReBAR has the CPU write into mapped device memory, by threads and bytes at a time,
// and the transfer queue bring the same bytes.
func sweepReBAR(ctx context.Context, out io.Writer) (err error) {
	inst, err := vk.Open(vk.InstanceOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close()) }()
	phys, err := inst.Pick("")
	if err != nil {
		return err
	}
	if !phys.Features.ReBAR && !phys.Features.UMA {
		fmt.Fprintf(out, "rebar: %s: the CPU can't write its memory, or only through a small window\n", phys.Name)
		return nil
	}
	dev, err := inst.NewDevice(phys, vk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	heap := mem.NewHeap(dev, "memory", 0)
	defer heap.Close()
	src, err := heap.AllocHost("source", window)
	if err != nil {
		return err
	}
	dst, err := heap.AllocShared("window", window, mem.Mapped)
	if err != nil {
		return err
	}
	from := src.Mapped()[:window]
	for i := range from {
		from[i] = byte(i*7 + i>>11)
	}
	best := 0.0
	for _, threads := range []int{1, 2, 4, 8} {
		for _, kib := range []int64{64, 1024, 16384} {
			rate := writeRate(ctx, dst.Mapped()[:window], from, threads, kib<<10)
			best = max(best, rate)
			fmt.Fprintf(out, "rebar: %s, %d threads, %5d KiB at a time: %5.1f GB/s\n", phys.Name, threads, kib, rate)
		}
	}
	if err := arrived(ctx, dev, heap, dst, from); err != nil {
		return err
	}
	plain, err := heap.Alloc("destination", window, vk.DeviceLocal)
	if err != nil {
		return err
	}
	queue, err := uploadRate(ctx, dev, heap, dev.Transfers, src, plain, 64<<20)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "rebar: best %.1f GB/s by the CPU, %.1f by %d transfer queues\n", best, queue, len(dev.Transfers))
	return ctx.Err()
}

// writeRate copies from to dst with so many threads, each taking the next piece.
func writeRate(ctx context.Context, dst, from []byte, threads int, piece int64) float64 {
	var next, done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range threads {
		wg.Go(func() {
			for time.Since(begin) < sweepTime && ctx.Err() == nil {
				at := (next.Add(piece) - piece) % int64(len(dst))
				copy(dst[at:at+piece], from[at:at+piece])
				done.Add(piece)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / 1e9 / time.Since(begin).Seconds()
}

// arrived has the device copy the window out, and compares: what never left the CPU's
// buffers would be no upload.
func arrived(ctx context.Context, dev *vk.Device, heap *mem.Heap, dst *vk.Buffer, want []byte) error {
	copy(dst.Mapped(), want)
	back, err := heap.Alloc("readback", window, vk.Readback)
	if err != nil {
		return err
	}
	defer heap.Free(back)
	pool, err := dev.Compute.NewCommandPool()
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := pool.New()
	if err != nil {
		return err
	}
	done, err := dev.NewTimeline("readback")
	if err != nil {
		return err
	}
	defer done.Close()
	if err := c.Begin(); err != nil {
		return err
	}
	c.Copy(back, 0, dst, 0, window)
	c.HostBarrier()
	if err := c.End(); err != nil {
		return err
	}
	err = dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{c}, Signals: []vk.Point{{Timeline: done, Value: 1}}})
	if err == nil {
		err = done.Wait(context.WithoutCancel(ctx), 1)
	}
	if err == nil && !bytes.Equal(back.Mapped()[:window], want) {
		err = errors.New("rebar: what the device reads is not what the CPU wrote")
	}
	return err
}
