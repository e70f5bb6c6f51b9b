package calibrate

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

const (
	pieceBytes  = 16 << 20 // of one upload, as the engine's own
	uploadSlots = 4
)

// CorruptError is an upload that arrived changed.
type CorruptError struct{}

func (*CorruptError) Error() string { return "the bytes that arrived are not those that were sent" }

// Hint says what helped others.
func (*CorruptError) Hint() string {
	return "update the driver; if it stays so, --one-queue may avoid the fault, and a report is welcome"
}

// Upload measures the link with about total bytes and compares what arrived with what was sent.
func Upload(ctx context.Context, dev *vk.Device, total int64) (Rate, error) {
	u, err := newUploadTest(dev)
	if err != nil {
		return Rate{}, fmt.Errorf("measure the upload: %w", err)
	}
	defer u.close()
	total = max(1, total/pieceBytes) * pieceBytes
	took, err := u.run(ctx, total)
	if err != nil {
		return Rate{}, fmt.Errorf("measure the upload: %w", err)
	}
	same, err := u.check(ctx)
	if err != nil {
		return Rate{}, fmt.Errorf("read back what was uploaded: %w", err)
	}
	if !same {
		return Rate{}, fmt.Errorf("measure the upload: %w", &CorruptError{})
	}
	return rate(total, took), nil
}

// uploadTest uploads pieces of staging memory over and over, as streaming does.
type uploadTest struct {
	dev  *vk.Device
	heap *mem.Heap
	up   *xfer.Uploader
	dst  *vk.Buffer
	last []byte // what was sent to the last piece of dst
}

func newUploadTest(dev *vk.Device) (*uploadTest, error) {
	u := &uploadTest{dev: dev, heap: mem.NewHeap(dev, "memory", 0)}
	var err error
	if u.up, err = xfer.New(dev, u.heap, xfer.Options{Slots: uploadSlots, SlotBytes: pieceBytes}); err == nil {
		u.dst, err = u.heap.Alloc("target of uploads", uploadSlots*pieceBytes, vk.DeviceLocal)
	}
	if err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *uploadTest) close() {
	if u.up != nil {
		_ = u.up.Close() // fails where the device is lost, which was reported
	}
	u.heap.Close()
}

// run fills the staging slots and warms up, then uploads total bytes against the clock.
func (u *uploadTest) run(ctx context.Context, total int64) (time.Duration, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range uploadSlots {
		err := u.piece(ctx, n, func(b []byte) {
			for i := 0; i < len(b); i += 8 {
				binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
			}
			u.last = b
		})
		if err != nil {
			return 0, err
		}
	}
	if err := u.up.Wait(ctx, u.up.Last()); err != nil {
		return 0, err
	}
	start := time.Now()
	for n := range int(total / pieceBytes) {
		if err := u.piece(ctx, n%uploadSlots, nil); err != nil {
			return 0, err
		}
	}
	err := u.up.Wait(ctx, u.up.Last())
	return time.Since(start), err
}

// piece uploads the next slot, whose turn is n, to the n-th piece of the target.
func (u *uploadTest) piece(ctx context.Context, n int, fill func([]byte)) error {
	slot, err := u.up.Acquire(ctx)
	if err != nil {
		return err
	}
	if fill != nil {
		fill(slot.Bytes())
	}
	dst := mem.Whole(u.dst).Slice(int64(n)*pieceBytes, pieceBytes)
	ticket, err := u.up.Submit([]xfer.Copy{{Dst: dst, Src: slot.Buffer, SrcOff: slot.Off, Bytes: pieceBytes}})
	slot.Release(ticket)
	return err
}

// check reads the last piece back on the compute queue.
func (u *uploadTest) check(ctx context.Context) (same bool, err error) {
	back, err := u.heap.Alloc("what was uploaded", pieceBytes, vk.Readback)
	if err != nil {
		return false, err
	}
	run, err := newRunner(u.dev)
	if err != nil {
		return false, err
	}
	defer run.close()
	_, err = run.submit(ctx, func(cb *vk.CommandBuffer) error {
		cb.Copy(back, 0, u.dst, (uploadSlots-1)*pieceBytes, pieceBytes)
		cb.HostBarrier()
		return nil
	}, u.up.Points(u.up.Last(), nil)...)
	return bytes.Equal(back.Mapped(), u.last), err
}
