package calibrate

import (
	"context"
	"slices"
	"time"

	"leat/internal/predict"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// What bursts are timed: about an expert, some, and all that a token uses of a layer. The engine uploads less than 8 MiB by one queue.
var burstBytes = []int64{3 << 20, 7 << 20, 9 << 20, 24 << 20}

const (
	burstPiece = 1 << 20 // about a matrix of an expert
	burstTimes = 40      // of each
	burstLimit = 100 * time.Millisecond
)

// bursts times uploads one after the other: the host hands in each when it has heard of the last.
func (f *flood) bursts(ctx context.Context, dev *vk.Device) (list []predict.Burst, err error) {
	run, err := newRunner(dev)
	if err != nil {
		return nil, err
	}
	defer run.close()
	for _, n := range burstBytes {
		if n = min(n, f.src.Bytes, f.dst.Bytes) / burstPiece * burstPiece; len(list) > 0 && n <= list[len(list)-1].Bytes {
			break
		}
		t, err := f.typicalBurst(ctx, run, n)
		if err != nil {
			return nil, err
		}
		seconds := t.Seconds()
		if len(list) > 0 { // noise must not make bytes free
			seconds = max(seconds, list[len(list)-1].Seconds)
		}
		list = append(list, predict.Burst{Bytes: n, Seconds: seconds})
	}
	return list, nil
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
