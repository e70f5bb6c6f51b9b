package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/conform"
	"leat/vk"
)

type kernelReport struct {
	Name    string  `json:"name"`
	Pass    bool    `json:"pass"`
	Cases   int     `json:"cases"`
	NMSE    float64 `json:"nmse"`     // the worst of the cases that passed
	MaxNMSE float64 `json:"max_nmse"` // allowed
	Seconds float64 `json:"seconds"`  // with the making of the pipeline, and the reference
	Error   string  `json:"error,omitempty"`
}

// selfTest runs each kernel on the chosen device against its Go reference.
func (d *doctor) selfTest(ctx context.Context) {
	if d.chosen == nil {
		return
	}
	cases := conform.Quick()
	switch {
	case d.full:
		cases = append(conform.Cases(), conform.Sweep()...)
	case d.sampled():
		cases = conform.Sample()
	}
	d.testCases(ctx, cases)
}

func (d *doctor) testCases(ctx context.Context, cases []conform.Case) {
	dev := d.openDevice(vk.DeviceOptions{})
	if dev == nil {
		return
	}
	defer d.closeDevice(dev)
	all, err := kernels.New(dev, kernels.Options{Logger: d.app.log})
	if err != nil {
		d.fail(err)
		return
	}
	defer all.Close()
	suite, err := conform.New(dev, all, uint64(time.Now().UnixNano()))
	if err != nil {
		d.fail(fmt.Errorf("self-test: %w", err))
		return
	}
	defer suite.Close()
	d.heading("Self-test on device %d, seed %d", d.chosen.Index, suite.Seed)
	choices := all.Choices()
	cases = slices.DeleteFunc(cases, func(c conform.Case) bool { return !suite.Can(&c) || d.sampled() && unused(choices, c) })
	d.testKernels(ctx, cases, suite.Run)
	d.blank()
}

// sampled says that of each kind of kernel that steps use one is tested: a CPU compiles a kernel for a second and more.
func (d *doctor) sampled() bool { return d.chosen.Type == vk.CPU && !d.full }

// unused says that the device computes an op in other ways than a case does.
func unused(choices []kernels.Choice, c conform.Case) bool {
	k, ok := shaders.Lookup(c.Kernel)
	return ok && slices.ContainsFunc(choices, func(way kernels.Choice) bool { return way.Op == k.Op && way.Variant == k.Variant && way.Lacks != "" })
}

// runCase is conform.Suite.Run; tests have kernels that fail.
type runCase func(context.Context, *conform.Case) (conform.Result, error)

func (d *doctor) testKernels(ctx context.Context, cases []conform.Case, run runCase) {
	byKernel := map[string][]*conform.Case{}
	var names []string
	for i := range cases {
		name := cases[i].Kernel
		if byKernel[name] == nil {
			names = append(names, name)
		}
		byKernel[name] = append(byKernel[name], &cases[i])
	}
	wrong, spared := 0, 0
	for _, name := range names {
		d.say("testing kernel %s, %d of %d", name, len(d.report.Kernels)+1, len(names)) // before it runs: who crashes is named
		fmt.Fprintf(d.out, "     %-30s", name)
		r, err := testKernel(ctx, run, name, byKernel[name])
		if ctx.Err() != nil {
			d.blank()
			return
		}
		d.report.Kernels = append(d.report.Kernels, r)
		if r.Pass {
			fmt.Fprintf(d.out, "PASS  %3d cases %6.0f ms  NMSE %.0e\n", r.Cases, 1000*r.Seconds, r.NMSE)
			continue
		}
		if wrong++; kernels.Replaced(name) {
			spared++
		}
		fmt.Fprintf(d.out, "FAIL  %3d cases %6.0f ms\n     %s\n", r.Cases, 1000*r.Seconds, r.Error)
		if errors.Is(err, vk.ErrDeviceLost) {
			d.fail(fmt.Errorf("self-test: kernel %s: %w", name, err))
			return
		}
	}
	if spared > 0 {
		d.warn(fmt.Sprintf("self-test: %d of %d kernels fail on %s that others can stand in for: leat runs, slower", spared, len(names), d.chosen.Name),
			"update the driver; if it stays so, report it with all this output")
	}
	if wrong > spared {
		d.fail(withHint(fmt.Errorf("self-test: %d of %d kernels fail on %s", wrong-spared, len(names), d.chosen.Name),
			"update the driver, or choose another device; if it stays so, report it with all this output"))
	}
}

// testKernel runs a kernel's cases and stops at the first that fails.
func testKernel(ctx context.Context, run runCase, name string, cases []*conform.Case) (kernelReport, error) {
	r := kernelReport{Name: name}
	start := time.Now()
	var err error
	for _, c := range cases {
		var res conform.Result
		r.Cases++
		if res, err = run(ctx, c); err != nil {
			r.Error = err.Error()
			break
		}
		r.NMSE, r.MaxNMSE = max(r.NMSE, res.NMSE), max(r.MaxNMSE, c.MaxNMSE)
	}
	r.Pass, r.Seconds = err == nil, time.Since(start).Seconds()
	return r, err
}
