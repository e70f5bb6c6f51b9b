package calibrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/predict"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Link is the rates of uploads in bytes a second, once several are under way, and the times of single ones.
type Link struct {
	Idle   float64         `json:"idle_bytes_per_second"` // kernels rest
	Busy   float64         `json:"busy_bytes_per_second"` // kernels read VRAM all the while; with one queue as Idle
	Bursts []predict.Burst `json:"bursts"`                // uploads by themselves, as of experts that a layer misses
}

const (
	linkPiece  = 64 << 20 // of one submission, about what a unit has
	linkAhead  = 4        // submissions under way
	linkSource = 512 << 20
	linkWarm   = 100 * time.Millisecond
	linkTime   = 500 * time.Millisecond
)

// LinkOf measures uploads as the engine does them: from pinned memory larger than any cache,
// on its queues, a unit at a time, one behind the other; alone, and while kernels that
// multiply with weights of type t, made as o says, keep the device busy.
func LinkOf(ctx context.Context, dev *vk.Device, t gguf.Type, o kernels.Options) (l Link, err error) {
	f, err := newFlood(dev)
	if err != nil {
		return l, fmt.Errorf("measure the link: %w", err)
	}
	defer f.close()
	if l.Idle, err = f.rate(ctx); err != nil {
		return l, fmt.Errorf("measure the link: %w", err)
	}
	if l.Bursts, err = f.bursts(ctx, dev); err != nil {
		return l, fmt.Errorf("measure the link in bursts: %w", err)
	}
	if l.Busy = l.Idle; oneQueue(dev) {
		return l, nil
	}
	_, read := Sizes(dev.Physical)
	k, err := NewKernels(ctx, dev, read, o)
	if err != nil {
		return l, err
	}
	defer k.Close()
	stop, err := k.keepBusy(ctx, t)
	if err != nil {
		return l, fmt.Errorf("measure the link: %w", err)
	}
	l.Busy, err = f.rate(ctx)
	if err = errors.Join(err, stop()); err != nil {
		return l, fmt.Errorf("measure the link beside kernels: %w", err)
	}
	l.Busy = min(l.Busy, l.Idle)
	return l, nil
}

// oneQueue says whether uploads and kernels take turns.
func oneQueue(dev *vk.Device) bool { return len(dev.Transfers) == 0 || dev.Transfers[0] == dev.Compute }

// flood uploads one block of pinned memory over and over.
type flood struct {
	heap     *mem.Heap
	up       *xfer.Uploader
	src, dst *vk.Buffer
	piece    int64
}

func newFlood(dev *vk.Device) (*flood, error) {
	f := &flood{heap: mem.NewHeap(dev, "memory", 0)}
	source := int64(linkSource)
	if dev.Physical.Type == vk.CPU {
		source /= 4
	}
	if _, available, err := mem.RAM(); err == nil {
		source = max(pieceBytes, min(source, available/8/pieceBytes*pieceBytes))
	}
	f.piece = min(linkPiece, source, Fitting(dev.Physical, linkPiece))
	var err error
	if f.src, err = f.heap.AllocHost("source of uploads", source/f.piece*f.piece); err == nil {
		f.dst, err = f.heap.Alloc("target of uploads", Fitting(dev.Physical, 2*f.piece)/f.piece*f.piece, vk.DeviceLocal)
	}
	if err == nil {
		f.up, err = xfer.New(dev, f.heap, xfer.Options{Slots: 1, SlotBytes: 4096})
	}
	if err != nil {
		f.close()
		return nil, err
	}
	for m, i := f.src.Mapped(), 0; i < len(m); i += 4096 {
		m[i] = byte(i >> 12) // no page is shared, or only promised
	}
	return f, nil
}

func (f *flood) close() {
	if f.up != nil {
		_ = f.up.Close() // fails where the device is lost, which was reported
	}
	f.heap.Close()
}

// rate keeps some submissions under way and counts those that end once the first ones have.
func (f *flood) rate(ctx context.Context) (float64, error) {
	var tickets [linkAhead]xfer.Ticket
	begin := time.Now()
	var from time.Time
	counted := int64(0)
	for n := int64(0); ; n++ {
		i := n % linkAhead
		if n >= linkAhead {
			if err := f.up.Wait(ctx, tickets[i]); err != nil {
				return 0, err
			}
			now := time.Now()
			switch {
			case from.IsZero() && now.Sub(begin) >= linkWarm:
				from = now
			case !from.IsZero():
				counted += f.piece
			}
			if counted >= linkAhead*f.piece && now.Sub(from) >= linkTime {
				return float64(counted) / now.Sub(from).Seconds(), f.up.Wait(ctx, f.up.Last())
			}
		}
		t, err := f.up.Submit([]xfer.Copy{{
			Dst: mem.Whole(f.dst).Slice(n*f.piece%f.dst.Bytes, f.piece), Src: f.src, SrcOff: n * f.piece % f.src.Bytes, Bytes: f.piece,
		}})
		if err != nil {
			return 0, err
		}
		tickets[i] = t
	}
}

// keepBusy lets the kernel that reads most of a model at decode read, until stop is called.
func (k *Kernels) keepBusy(ctx context.Context, t gguf.Type) (stop func() error, err error) {
	row, err := t.RowBytes(width)
	if err != nil {
		return nil, err
	}
	product := k.product(min(k.total/row, (restBytes-maxCols*width*4)/4), width, 1)
	read := func(r *kernels.Recorder) error { return kernels.MulMat(r, t, product) }
	one, err := k.times(ctx, read) // builds the pipeline, too
	if err != nil {
		return nil, err
	}
	const stretch = 10 * time.Millisecond
	times := int(min(max(1, stretch/one), 100))
	enough, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-enough:
				ended <- nil
				return
			default:
			}
			if _, err := k.run.submit(ctx, func(cb *vk.CommandBuffer) error {
				r := k.kernels.Recorder(cb)
				for range times {
					if err := read(r); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() error { close(enough); return <-ended }, nil
}
