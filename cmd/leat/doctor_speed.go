package main

import (
	"cmp"
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

// speedProbe measures the rates of the tested device and of a disk.
type speedProbe struct {
	found   *findings
	device  *testedDevice
	kernels kernels.Options
	quick   bool // with an eighth of the bytes
	reports []speedReport
}

// measure measures the device, if its kernels ran, and the disk of a folder or file.
func (p *speedProbe) measure(ctx context.Context, kernelsRan bool, disk string) {
	p.found.heading("Speed")
	defer p.found.blank()
	if kernelsRan && !p.device.lost() {
		p.measureDevice(ctx)
	}
	if ctx.Err() == nil {
		p.measureDisk(ctx, cmp.Or(disk, defaultDisk()))
	}
}

// add notes a speed and prints it: a line with the verdict, a line with what it decides.
func (p *speedProbe) add(s speedReport) {
	p.reports = append(p.reports, s)
	p.found.field(s.Name, "%s, %s: %s", formatRate(s.BytesPerSec), s.What, s.Verdict)
	p.found.field("", "%s", s.Matters)
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

func (p *speedProbe) measureDevice(ctx context.Context) {
	p.found.say("measuring the device")
	upload, read := calibrate.Sizes(p.device.chosen)
	if p.quick {
		upload, read = calibrate.Fitting(p.device.chosen, upload/8), calibrate.Fitting(p.device.chosen, read/8)
	}
	if hasTransferQueue(p.device.chosen) {
		p.onDevice(ctx, vk.DeviceOptions{}, func(dev *vk.Device) error { return p.measureUpload(ctx, dev, "transfer queue", upload) })
	}
	p.onDevice(ctx, vk.DeviceOptions{OneQueue: true}, func(dev *vk.Device) error {
		if err := p.measureUpload(ctx, dev, "compute queue", upload); err != nil {
			return err
		}
		return p.measureReads(ctx, dev, read)
	})
}

// onDevice opens the device for one measurement, and notes how that fails.
func (p *speedProbe) onDevice(ctx context.Context, o vk.DeviceOptions, measure func(*vk.Device) error) {
	dev := p.device.open(o)
	if dev == nil {
		return
	}
	defer p.device.close(dev)
	err := measure(dev)
	var wrong *calibrate.CorruptError
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, vk.ErrDeviceLost), errors.As(err, &wrong):
		p.found.fail(err)
	default:
		p.found.field("", "%s", err)
		p.found.warn(err.Error(), hintFor(err))
	}
}

func (p *speedProbe) measureUpload(ctx context.Context, dev *vk.Device, queue string, total int64) error {
	r, err := calibrate.Upload(ctx, dev, total)
	if err != nil {
		return fmt.Errorf("%s: %w", queue, err)
	}
	s := speedReport{Name: "upload", What: queue, Bytes: r.Bytes, BytesPerSec: r.BytesPerSec}
	s.Matters = "weights outside VRAM come this way for each token: " + gigabyte(s.BytesPerSec)
	if s.Verdict = verdict(s.BytesPerSec, 20, 10); p.device.chosen.Type == vk.CPU {
		s.Verdict = "a copy within RAM, the device is the CPU"
	}
	p.add(s)
	if p.device.chosen.Type == vk.Discrete && s.BytesPerSec < 5e9 {
		p.found.warn(fmt.Sprintf("the %s uploads at %s, as a link of few lanes does", queue, formatRate(s.BytesPerSec)),
			"see whether the card has all lanes of its slot (Linux: lspci -vv, LnkSta), and is not in an external box")
	}
	return nil
}

// measureReads lets the kernel that reads most of a model at decode read total bytes.
func (p *speedProbe) measureReads(ctx context.Context, dev *vk.Device, total int64) error {
	// The self-test has told what of them computes wrong.
	k, err := calibrate.NewKernels(ctx, dev, total, p.kernels)
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
		p.add(s)
	}
	return nil
}
