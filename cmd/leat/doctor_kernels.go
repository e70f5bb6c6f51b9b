package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
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

// kernelTests holds each kernel on the tested device against its Go reference.
type kernelTests struct {
	found   *findings
	device  *testedDevice
	log     *slog.Logger
	full    bool // all kernels on a CPU too, and the sweep
	reports []kernelReport
}

// ran reports whether the device computed with any kernel.
func (t *kernelTests) ran() bool { return len(t.reports) > 0 }

// run tests the kernels by a few cases each: on a CPU one kernel of each kind, unless full.
func (t *kernelTests) run(ctx context.Context) {
	if t.device.chosen == nil {
		return
	}
	cases := selftest.Quick()
	switch {
	case t.full:
		cases = append(cases, selftest.Sweep()...)
	case t.sampled():
		cases = selftest.Sample()
	}
	t.testCases(ctx, cases)
}

func (t *kernelTests) testCases(ctx context.Context, cases []selftest.Case) {
	dev := t.device.open(vk.DeviceOptions{})
	if dev == nil {
		return
	}
	defer t.device.close(dev)
	all, err := kernels.New(dev, kernels.Options{Logger: t.log})
	if err != nil {
		t.found.fail(err)
		return
	}
	defer all.Close()
	runner, err := selftest.New(dev, all, uint64(time.Now().UnixNano()))
	if err != nil {
		t.found.fail(fmt.Errorf("self-test: %w", err))
		return
	}
	defer runner.Close()
	t.found.heading("Self-test on device %d, seed %d", t.device.chosen.Index, runner.Seed)
	choices := all.Choices()
	cases = slices.DeleteFunc(cases, func(c selftest.Case) bool { return !runner.Can(&c) || t.sampled() && unused(choices, c) })
	t.testKernels(ctx, cases, runner.Run)
	t.found.blank()
}

// sampled says that of each kind of kernel that steps use one is tested: a CPU compiles a kernel for a second and more.
func (t *kernelTests) sampled() bool { return t.device.chosen.Type == vk.CPU && !t.full }

// unused says that the device computes an op in other ways than a case does.
func unused(choices []kernels.Choice, c selftest.Case) bool {
	k, ok := shaders.Lookup(c.Kernel)
	return ok && slices.ContainsFunc(choices, func(way kernels.Choice) bool { return way.Op == k.Op && way.Variant == k.Variant && way.Lacks != "" })
}

// runCase is selftest.Runner.Run; tests have kernels that fail.
type runCase func(context.Context, *selftest.Case) (selftest.Result, error)

func (t *kernelTests) testKernels(ctx context.Context, cases []selftest.Case, run runCase) {
	byKernel := map[string][]*selftest.Case{}
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
		t.found.say("testing kernel %s, %d of %d", name, len(t.reports)+1, len(names)) // before it runs: who crashes is named
		fmt.Fprintf(t.found.out, "     %-30s", name)
		r, err := testKernel(ctx, run, name, byKernel[name])
		if ctx.Err() != nil {
			t.found.blank()
			return
		}
		t.reports = append(t.reports, r)
		if r.Pass {
			fmt.Fprintf(t.found.out, "PASS  %3d cases %6.0f ms  NMSE %.0e\n", r.Cases, 1000*r.Seconds, r.NMSE)
			continue
		}
		if wrong++; kernels.HasStandIn(name) {
			spared++
		}
		fmt.Fprintf(t.found.out, "FAIL  %3d cases %6.0f ms\n     %s\n", r.Cases, 1000*r.Seconds, r.Error)
		if errors.Is(err, vk.ErrDeviceLost) {
			t.found.fail(fmt.Errorf("self-test: kernel %s: %w", name, err))
			return
		}
	}
	if spared > 0 {
		t.found.warn(fmt.Sprintf("self-test: %d of %d kernels fail on %s that others can stand in for: leat runs, slower", spared, len(names), t.device.chosen.Name),
			"update the driver; if it stays so, report it with all this output")
	}
	if wrong > spared {
		t.found.fail(withHint(fmt.Errorf("self-test: %d of %d kernels fail on %s", wrong-spared, len(names), t.device.chosen.Name),
			"update the driver, or choose another device; if it stays so, report it with all this output"))
	}
}

// testKernel runs a kernel's cases and stops at the first that fails.
func testKernel(ctx context.Context, run runCase, name string, cases []*selftest.Case) (kernelReport, error) {
	r := kernelReport{Name: name}
	start := time.Now()
	var err error
	for _, c := range cases {
		var res selftest.Result
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
