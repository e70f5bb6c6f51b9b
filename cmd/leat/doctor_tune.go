package main

import (
	"context"
	"fmt"

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

// kernelTuning measures which constants of the kernels are fastest on the tested device, and keeps them.
type kernelTuning struct {
	app     *app
	found   *findings
	device  *testedDevice
	reports []tunedReport
}

// run tunes for the products of a model; "": of a common one.
func (t *kernelTuning) run(ctx context.Context, model string) {
	if t.device.chosen == nil || t.device.lost() {
		return
	}
	products := calibrate.CommonProducts()
	if model != "" {
		var err error
		if products, err = productsOf(t.app, model); err != nil {
			t.found.fail(err)
			return
		}
	}
	dev := t.device.open(vk.DeviceOptions{})
	if dev == nil {
		return
	}
	defer t.device.close(dev)
	if err := t.tuneDevice(ctx, dev, products); err != nil && ctx.Err() == nil {
		t.found.fail(err)
	}
}

func (t *kernelTuning) tuneDevice(ctx context.Context, dev *vk.Device, products []calibrate.Product) error {
	t.found.heading("Tuning on device %d", t.device.chosen.Index)
	defer t.found.blank()
	folder := t.app.cacheFolder()
	if err := kernels.ForgetTests(folder, dev.Physical); err != nil {
		return fmt.Errorf("forget earlier self-tests: %w", err)
	}
	t.found.status.clear()
	var bar *progress
	constants, gains, err := calibrate.Tune(ctx, dev, products, t.app.log, func(done, total int) {
		if bar == nil {
			bar = t.app.counting("tuning", int64(total))
		}
		bar.Set(int64(done))
	})
	if bar != nil {
		bar.Close()
	}
	if err != nil {
		return err
	}
	if err := kernels.SaveTuned(folder, dev, constants); err != nil {
		return fmt.Errorf("keep what was tuned: %w", err)
	}
	for _, g := range gains {
		t.reports = append(t.reports, tunedReport(g))
		t.printGain(g)
	}
	return nil
}

// printGain is a row of the table of what won, by how much.
func (t *kernelTuning) printGain(g calibrate.Gain) {
	was := 1e3 * g.OwnSeconds
	if g.Best == "" {
		fmt.Fprintf(t.found.out, "     %-40s %9.2f ms  stays: %s\n", g.What, was, g.Own)
		return
	}
	fmt.Fprintf(t.found.out, "     %-40s %9.2f ms  %.2f times as fast: %s, not %s\n", g.What, was, g.OwnSeconds/g.BestSeconds, g.Best, g.Own)
}

// productsOf lists what a model multiplies.
func productsOf(a *app, arg string) ([]calibrate.Product, error) {
	m, _, err := openModel(arg)
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
