package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"leat/gguf"
	"leat/shaders"
	"leat/shaders/gpu"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

const (
	pieceBytes  = 16 << 20 // of one upload, as the engine's own
	uploadSlots = 4
)

// speedReport is a rate that was measured, and what to think of it.
type speedReport struct {
	Name        string  `json:"name"` // "upload", "VRAM", "disk"
	What        string  `json:"what"`
	Bytes       int64   `json:"bytes"`
	BytesPerSec float64 `json:"bytes_per_second"`
	Verdict     string  `json:"verdict"` // good, fair, slow; or why it can't be told
	Matters     string  `json:"matters"`
}

func (d *doctor) speeds(ctx context.Context) {
	d.heading("Speed")
	defer d.blank()
	if len(d.report.Kernels) > 0 && !errors.Is(d.failure, vk.ErrDeviceLost) {
		d.measureDevice(ctx)
	}
	if ctx.Err() == nil {
		d.measureDisk(ctx)
	}
}

// add notes a speed and prints it: a line with the verdict, a line with what it decides.
func (d *doctor) add(s speedReport) {
	d.report.Speeds = append(d.report.Speeds, s)
	d.field(s.Name, "%s, %s: %s", formatRate(s.BytesPerSec), s.What, s.Verdict)
	d.field("", "%s", s.Matters)
}

// verdict ranks a rate in GB/s.
func verdict(rate, good, fair float64) string {
	switch {
	case rate >= good*1e9:
		return "good"
	case rate >= fair*1e9:
		return "fair"
	}
	return "slow"
}

// gigabyte says how long 1 GB takes at a rate.
func gigabyte(rate float64) string {
	if rate < 1e9 {
		return fmt.Sprintf("1 GB in %.1f s", 1e9/rate)
	}
	return fmt.Sprintf("1 GB in %.3g ms", 1e12/rate)
}

func (d *doctor) measureDevice(ctx context.Context) {
	upload, read := int64(256<<20), int64(512<<20) // what is read fits no cache: some GPUs have 256 MiB
	if d.chosen.Type == vk.CPU {
		upload, read = 64<<20, 64<<20
	}
	if d.quick {
		upload, read = upload/8, read/8
	}
	fitting := func(n int64) int64 { return max(pieceBytes, min(n, d.chosen.FreeBytes()/4)/pieceBytes*pieceBytes) }
	upload, read = fitting(upload), fitting(read)
	if hasTransferQueue(d.chosen) {
		d.onDevice(ctx, vk.DeviceOptions{}, func(dev *vk.Device) error { return d.measureUpload(ctx, dev, "transfer queue", upload) })
	}
	d.onDevice(ctx, vk.DeviceOptions{OneQueue: true}, func(dev *vk.Device) error {
		if err := d.measureUpload(ctx, dev, "compute queue", upload); err != nil {
			return err
		}
		return d.measureReads(ctx, dev, read)
	})
}

// onDevice opens the device for one measurement, and notes how that fails.
func (d *doctor) onDevice(ctx context.Context, o vk.DeviceOptions, measure func(*vk.Device) error) {
	dev := d.openDevice(o)
	if dev == nil {
		return
	}
	defer d.closeDevice(dev)
	err := measure(dev)
	var wrong *corruptError
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, vk.ErrDeviceLost), errors.As(err, &wrong):
		d.fail(err)
	default:
		d.field("", "%s", err)
		d.warn(err.Error(), hintFor(err))
	}
}

// corruptError is an upload that arrived changed.
type corruptError struct{ queue string }

func (e *corruptError) Error() string {
	return "upload on the " + e.queue + ": the bytes that arrived are not those that were sent"
}

func (e *corruptError) Hint() string {
	return "update the driver; if it stays so, --one-queue may avoid the fault, and a report is welcome"
}

func (d *doctor) measureUpload(ctx context.Context, dev *vk.Device, queue string, total int64) error {
	u, err := newUploadTest(dev)
	if err != nil {
		return fmt.Errorf("measure the upload: %w", err)
	}
	defer u.close()
	took, err := u.run(ctx, total)
	if err != nil {
		return fmt.Errorf("measure the upload on the %s: %w", queue, err)
	}
	same, err := u.check(ctx)
	if err != nil {
		return fmt.Errorf("read back what the %s uploaded: %w", queue, err)
	}
	if !same {
		return &corruptError{queue}
	}
	s := speedReport{Name: "upload", What: queue, Bytes: total, BytesPerSec: float64(total) / took.Seconds()}
	s.Matters = "weights outside VRAM come this way for each token: " + gigabyte(s.BytesPerSec)
	if s.Verdict = verdict(s.BytesPerSec, 20, 10); d.chosen.Type == vk.CPU {
		s.Verdict = "a copy within RAM, the device is the CPU"
	}
	d.add(s)
	if d.chosen.Type == vk.Discrete && s.BytesPerSec < 5e9 {
		d.warn(fmt.Sprintf("the %s uploads at %s, as a link of few lanes does", queue, formatRate(s.BytesPerSec)),
			"see whether the card has all lanes of its slot (Linux: lspci -vv, LnkSta), and is not in an external box")
	}
	return nil
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

// runner submits single command buffers to the compute queue and waits for them.
type runner struct {
	dev    *vk.Device
	pool   *vk.CommandPool
	cb     *vk.CommandBuffer
	done   *vk.Timeline
	ticket uint64
}

func newRunner(dev *vk.Device) (*runner, error) {
	r := &runner{dev: dev}
	var err error
	if r.pool, err = dev.Compute.NewCommandPool(); err == nil {
		if r.cb, err = r.pool.New(); err == nil {
			r.done, err = dev.NewTimeline("doctor")
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runner) close() {
	if r.pool != nil {
		r.pool.Close()
	}
	if r.done != nil {
		r.done.Close()
	}
}

func (r *runner) submit(ctx context.Context, record func(*vk.CommandBuffer) error, waits ...vk.Point) (time.Duration, error) {
	if err := r.cb.Begin(); err != nil {
		return 0, err
	}
	if err := record(r.cb); err != nil {
		return 0, err
	}
	if err := r.cb.End(); err != nil {
		return 0, err
	}
	r.ticket++
	start := time.Now()
	err := r.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{r.cb}, Waits: waits, Signals: []vk.Point{{Timeline: r.done, Value: r.ticket}}})
	if err != nil {
		return 0, err
	}
	err = r.done.Wait(ctx, r.ticket)
	return time.Since(start), err
}

// measureReads lets the kernel that reads most of a model at decode read total bytes.
func (d *doctor) measureReads(ctx context.Context, dev *vk.Device, total int64) error {
	kernels, err := gpu.New(dev, gpu.Options{Logger: d.app.log})
	if err != nil {
		return err
	}
	defer kernels.Close()
	run, err := newRunner(dev)
	if err != nil {
		return err
	}
	defer run.close()
	const k, rest = 4096, 4 << 20 // the vectors lie behind the weights
	buffer, err := dev.NewBuffer("weights to read", total+rest, vk.DeviceLocal)
	if err != nil {
		return fmt.Errorf("measure VRAM: %w", err)
	}
	defer buffer.Close()
	_, err = run.submit(ctx, func(cb *vk.CommandBuffer) error {
		cb.Fill(buffer, 0, buffer.Bytes, 0x2c002c00) // small numbers in every format
		return nil
	})
	if err != nil {
		return fmt.Errorf("measure VRAM: %w", err)
	}
	for _, t := range []gguf.Type{gguf.F16, gguf.Q4_K} {
		row, err := t.RowBytes(k)
		if err != nil {
			return err
		}
		x := buffer.Address + uint64(total)
		a := shaders.MulMatArgs{W: buffer.Address, X: x, Dst: x + 1<<20, M: uint32(total / row), K: k, N: 1, XStride: k, DstStride: uint32(total / row)}
		took, err := run.repeat(ctx, func(cb *vk.CommandBuffer, times int) error {
			r := kernels.Recorder(cb)
			for range times {
				if err := r.MulMat(t, a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("measure VRAM with mul_mat_vec %v: %w", t, err)
		}
		d.addRead(t, total/row*row, took)
	}
	return nil
}

// repeat gives the time of one of what record records, from submissions long enough that
// the way to the device and back counts for nothing, short enough for any watchdog.
func (r *runner) repeat(ctx context.Context, record func(cb *vk.CommandBuffer, times int) error) (best time.Duration, err error) {
	const long = 50 * time.Millisecond
	times := 1
	for range 5 { // the first also builds the pipeline
		took, err := r.submit(ctx, func(cb *vk.CommandBuffer) error { return record(cb, times) })
		if err != nil {
			return 0, err
		}
		one := max(1, took/time.Duration(times))
		if best == 0 || one < best {
			best = one
		}
		times = int(min(max(1, long/one), 1000))
	}
	return best, nil
}

func (d *doctor) addRead(t gguf.Type, bytes int64, took time.Duration) {
	s := speedReport{Name: "VRAM", What: fmt.Sprintf("weights in %v times a vector", t), Bytes: bytes, BytesPerSec: float64(bytes) / took.Seconds()}
	s.Matters = "weights in VRAM are read so for each token: " + gigabyte(s.BytesPerSec)
	s.Verdict = verdict(s.BytesPerSec, 100, 30)
	d.add(s)
}
