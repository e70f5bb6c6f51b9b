package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"leat/decompose/pack"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/xfer"
)

var sweepTime = time.Second // of one point; tests make it short

// sweepLink uploads one block over and over, by lanes and bytes in a submission.
func sweepLink(ctx context.Context, out io.Writer) (err error) {
	inst, err := vk.Open(vk.InstanceOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close()) }()
	phys, err := inst.Pick("")
	if err != nil {
		return err
	}
	dev, err := inst.NewDevice(phys, vk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	heap := mem.NewHeap(dev, "memory", 0)
	defer heap.Close()
	const block = 512 << 20
	src, err := heap.AllocHost("source", block)
	if err != nil {
		return err
	}
	dst, err := heap.Alloc("destination", block, vk.DeviceLocal)
	if err != nil {
		return err
	}
	best := 0.0
	for lanes := 1; lanes <= len(dev.Transfers); lanes++ {
		for _, mib := range []int64{16, 64, 128} {
			rate, err := uploadRate(ctx, dev, heap, dev.Transfers[:lanes], src, dst, mib<<20)
			if err != nil {
				return err
			}
			best = max(best, rate)
			fmt.Fprintf(out, "link: %s, %d lanes, %3d MiB a submission: %5.1f GB/s\n", phys.Name, lanes, mib, rate)
		}
	}
	fmt.Fprintf(out, "link: best %.1f GB/s\n", best)
	return nil
}

func uploadRate(ctx context.Context, dev *vk.Device, heap *mem.Heap, queues []*vk.Queue, src, dst *vk.Buffer, bytes int64) (float64, error) {
	u, err := xfer.New(dev, heap, xfer.Options{Slots: 1, SlotBytes: 4096, Queues: queues})
	if err != nil {
		return 0, err
	}
	defer u.Close()
	var tickets []xfer.Ticket
	begin, done := time.Now(), int64(0)
	for time.Since(begin) < sweepTime {
		at := done % src.Bytes
		t, err := u.Submit([]xfer.Copy{{Dst: mem.Whole(dst).Slice(at, bytes), Src: src, SrcOff: at, Bytes: bytes}})
		if err != nil {
			return 0, err
		}
		done += bytes
		if tickets = append(tickets, t); len(tickets) > 8 { // ahead of the device, but not far
			if err := u.Wait(ctx, tickets[len(tickets)-8]); err != nil {
				return 0, err
			}
		}
	}
	err = u.Wait(ctx, u.Last())
	return float64(done) / 1e9 / time.Since(begin).Seconds(), err
}

// sweepDisk reads the model's largest file, by depth of the queue and bytes of a read.
func sweepDisk(ctx context.Context, model string, out io.Writer) error {
	path, size, err := largestFile(model)
	if err != nil {
		return err
	}
	var best [2]float64
	at := int64(0)
	for _, depth := range []int{4, 8, 16, 32} {
		for _, mib := range []int64{4, 8, 16} {
			cpu, begin := cpuTime(), time.Now()
			r, err := readTwice(ctx, path, size, depth, mib<<20, &at)
			if err != nil {
				return err
			}
			best[0], best[1] = max(best[0], r.first), max(best[1], r.again)
			fmt.Fprintf(out, "disk: depth %2d, %2d MiB a read, direct %v: first %5.2f, again %5.2f GB/s, cpu %.1f%% of a core\n",
				depth, mib, r.direct, r.first, r.again, 100*(cpuTime()-cpu).Seconds()/time.Since(begin).Seconds())
		}
	}
	fmt.Fprintf(out, "disk: best %.2f GB/s, again %.2f\n", best[0], best[1])
	return nil
}

func largestFile(model string) (path string, size int64, err error) {
	m, err := pack.Open(model)
	if err != nil {
		return "", 0, err
	}
	defer m.Close()
	for _, p := range m.Files {
		info, err := os.Stat(p)
		if err != nil {
			return "", 0, err
		}
		if info.Size() > size {
			path, size = p, info.Size()
		}
	}
	return path, size, nil
}

// reading is one point of the disk's sweep.
type reading struct {
	first, again float64 // GB/s
	direct       bool
}

// readTwice goes on in the file where the last point ended, so that no cache of the disk's has what is
// read first; then it reads the same again.
func readTwice(ctx context.Context, path string, size int64, depth int, bytes int64, at *int64) (r reading, err error) {
	f, err := file.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	bytes = min(bytes, size)
	list := make([]*file.Request, depth+2)
	room := file.Room(0, bytes)
	memory, free, err := mem.Anonymous(int64(len(list)) * room) // as staging is
	if err != nil {
		return r, err
	}
	defer free()
	clear(memory) // its pages are there before the clock runs
	for i := range list {
		list[i] = file.NewRequest()
		list[i].File, list[i].N, list[i].Dst = f, bytes, memory[int64(i)*room:][:room]
	}
	p := file.NewPool(depth, nil)
	defer p.Close()
	var offs []int64
	next := func(int) (off int64, more bool) {
		if *at+bytes > size {
			*at = 0
		}
		off, *at = *at, *at+bytes
		offs = append(offs, off)
		return off, true
	}
	if r.first, err = readRate(ctx, p, list, sweepTime, next); err != nil {
		return r, err
	}
	r.again, err = readRate(ctx, p, list, time.Hour, func(n int) (int64, bool) {
		if n == len(offs) {
			return 0, false
		}
		return offs[n], true
	})
	r.direct = f.Direct()
	return r, err
}

// readRate reads for a while, or as long as there is a next one, and returns GB/s.
func readRate(ctx context.Context, p *file.Pool, list []*file.Request, most time.Duration, next func(n int) (off int64, more bool)) (float64, error) {
	begin, done := time.Now(), int64(0)
	started, ended := 0, 0
	for more := true; more || ended < started; {
		if more && started-ended < len(list) {
			r := list[started%len(list)]
			if r.Off, more = next(started); !more {
				continue
			}
			if err := p.Start(ctx, r); err != nil {
				return 0, err
			}
			started++
			more = time.Since(begin) < most
			continue
		}
		r := list[ended%len(list)]
		if err := r.Wait(ctx); err != nil {
			return 0, err
		}
		ended++
		done += r.N
	}
	return float64(done) / 1e9 / time.Since(begin).Seconds(), nil
}
