package main

import (
	"context"
	"errors"
	"fmt"

	"leat/gguf"
	"leat/internal/calibrate"
	"leat/internal/kernels"
	"leat/vk"
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
	d.say("measuring the device")
	upload, read := calibrate.Sizes(d.chosen)
	if d.quick {
		upload, read = calibrate.Fitting(d.chosen, upload/8), calibrate.Fitting(d.chosen, read/8)
	}
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
	var wrong *calibrate.CorruptError
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, vk.ErrDeviceLost), errors.As(err, &wrong):
		d.fail(err)
	default:
		d.field("", "%s", err)
		d.warn(err.Error(), hintFor(err))
	}
}

func (d *doctor) measureUpload(ctx context.Context, dev *vk.Device, queue string, total int64) error {
	r, err := calibrate.Upload(ctx, dev, total)
	if err != nil {
		return fmt.Errorf("%s: %w", queue, err)
	}
	s := speedReport{Name: "upload", What: queue, Bytes: r.Bytes, BytesPerSec: r.BytesPerSec}
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

// measureReads lets the kernel that reads most of a model at decode read total bytes.
func (d *doctor) measureReads(ctx context.Context, dev *vk.Device, total int64) error {
	// The self-test has told what of them computes wrong.
	k, err := calibrate.NewKernels(ctx, dev, total, kernels.Options{Logger: d.app.log, Cache: d.app.cacheFolder()})
	if err != nil {
		return err
	}
	defer k.Close()
	for _, t := range []gguf.Type{gguf.F16, gguf.Q4_K} {
		r, err := k.Reads(ctx, t)
		if err != nil {
			return err
		}
		s := speedReport{Name: "VRAM", What: fmt.Sprintf("weights in %v times a vector", t), Bytes: r.Bytes, BytesPerSec: r.BytesPerSec}
		s.Matters = "weights in VRAM are read so for each token: " + gigabyte(s.BytesPerSec)
		s.Verdict = verdict(s.BytesPerSec, 100, 30)
		d.add(s)
	}
	return nil
}
