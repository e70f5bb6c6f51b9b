package main

import (
	"context"
	"errors"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/calibrate"
	"leat/internal/kernels"
	"leat/vk"
)

// tunedReport is what --tune found for one choice; the times are of a step, of all that it is for.
type tunedReport struct {
	What        string  `json:"what"`
	Own         string  `json:"own"`            // what leat chooses by itself
	Best        string  `json:"best,omitempty"` // what is faster and will be used
	OwnSeconds  float64 `json:"own_seconds"`
	BestSeconds float64 `json:"best_seconds"`
}

// tuneKernels measures what is fastest on the chosen device, and keeps it.
func (d *doctor) tuneKernels(ctx context.Context) {
	if !d.tune || d.chosen == nil || errors.Is(d.failure, vk.ErrDeviceLost) {
		return
	}
	products := calibrate.CommonProducts()
	if d.model != "" {
		var err error
		if products, err = d.app.productsOf(d.model); err != nil {
			d.fail(err)
			return
		}
	}
	dev := d.openDevice(vk.DeviceOptions{})
	if dev == nil {
		return
	}
	defer d.closeDevice(dev)
	if err := d.tuneDevice(ctx, dev, products); err != nil && ctx.Err() == nil {
		d.fail(err)
	}
}

func (d *doctor) tuneDevice(ctx context.Context, dev *vk.Device, products []calibrate.Product) error {
	d.heading("Tuning on device %d", d.chosen.Index)
	defer d.blank()
	folder := d.app.cacheFolder()
	if err := kernels.ForgetTests(folder, dev.Physical); err != nil {
		return fmt.Errorf("forget earlier self-tests: %w", err)
	}
	d.status.clear()
	var bar *progress
	tuned, gains, err := calibrate.Tune(ctx, dev, products, d.app.log, func(done, total int) {
		if bar == nil {
			bar = d.app.counting("tuning", int64(total))
		}
		bar.Set(int64(done))
	})
	if bar != nil {
		bar.Close()
	}
	if err != nil {
		return err
	}
	if err := kernels.SaveTuned(folder, dev, tuned); err != nil {
		return fmt.Errorf("keep what was tuned: %w", err)
	}
	for _, g := range gains {
		d.report.Tuned = append(d.report.Tuned, tunedReport(g))
		d.printGain(g)
	}
	return nil
}

// printGain is a row of the table of what won, by how much.
func (d *doctor) printGain(g calibrate.Gain) {
	was := 1e3 * g.OwnSeconds
	if g.Best == "" {
		fmt.Fprintf(d.out, "     %-40s %9.2f ms  stays: %s\n", g.What, was, g.Own)
		return
	}
	fmt.Fprintf(d.out, "     %-40s %9.2f ms  %.2f times as fast: %s, not %s\n", g.What, was, g.OwnSeconds/g.BestSeconds, g.Best, g.Own)
}

// productsOf lists what a model multiplies.
func (a *app) productsOf(arg string) ([]calibrate.Product, error) {
	path, err := a.modelPath(arg)
	if err != nil {
		return nil, err
	}
	m, err := pack.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		return nil, err
	}
	return calibrate.ProductsOf(h, m), nil
}
