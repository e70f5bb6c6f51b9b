package calibrate

import (
	"context"
	"slices"
	"time"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

const (
	burstPiece = 1 << 20      // about a matrix of an expert
	burstLess  = 3 * 1 << 20  // about an expert
	burstMore  = 24 * 1 << 20 // all that a token uses of a layer
	burstTimes = 40           // of each
	burstLimit = 200 * time.Millisecond
)

// burst times uploads of few bytes and of more, one after the other: the host hands in each when it has heard of the last.
func (f *flood) burst(ctx context.Context, dev *vk.Device) (b Burst, err error) {
	run, err := newRunner(dev)
	if err != nil {
		return b, err
	}
	defer run.close()
	more := min(burstMore, f.src.Bytes, f.dst.Bytes) / burstPiece * burstPiece
	less := min(burstLess, more/2)
	short, err := f.typicalBurst(ctx, run, less)
	if err != nil {
		return b, err
	}
	long, err := f.typicalBurst(ctx, run, more)
	if err != nil {
		return b, err
	}
	// What a burst of no bytes would take, and what each byte adds. Noise must not make bytes free, nor bursts.
	perByte := max(long-short, long/4).Seconds() / float64(more-less)
	return Burst{Seconds: max(0, short.Seconds()-perByte*float64(less)), BytesPerSec: 1 / perByte}, nil
}

// typicalBurst is the median.
func (f *flood) typicalBurst(ctx context.Context, run *runner, bytes int64) (time.Duration, error) {
	var times []time.Duration
	for begin := time.Now(); len(times) < 3 || len(times) < burstTimes && time.Since(begin) < burstLimit; {
		from := int64(len(times)) * bytes
		t, err := f.oneBurst(ctx, run, from, bytes)
		if err != nil {
			return 0, err
		}
		times = append(times, t)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// oneBurst uploads so many bytes, has the compute queue wait for them, and hears of that.
func (f *flood) oneBurst(ctx context.Context, run *runner, from, bytes int64) (time.Duration, error) {
	var copies []xfer.Copy
	for at := int64(0); at < bytes; at += burstPiece {
		n := min(burstPiece, bytes-at)
		src, dst := (from+at)%(f.src.Bytes-n+1), (from+at)%(f.dst.Bytes-n+1)
		copies = append(copies, xfer.Copy{Dst: mem.Whole(f.dst).Slice(dst/256*256, n), Src: f.src, SrcOff: src / 256 * 256, Bytes: n})
	}
	if err := run.record(func(cb *vk.CommandBuffer) error { cb.HostBarrier(); return nil }); err != nil {
		return 0, err
	}
	begin := time.Now()
	t, err := f.up.Submit(copies)
	if err != nil {
		return 0, err
	}
	if err := run.hand(f.up.Points(t, nil)...); err != nil {
		return 0, err
	}
	err = run.hear(ctx)
	return time.Since(begin), err
}
