package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"leat/internal/kernels"
	"leat/vk"
)

func init() { commands = append(commands, newDoctorCmd) }

func newDoctorCmd(a *app) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [--tune [MODEL]] [--retry] [--kernels MODEL]",
		Short: "Examine this machine, and print what a bug report needs",
		Long: `Examine this machine: the Vulkan loader, drivers, layers and devices, each kernel
against its reference, and the speeds that decide how fast a model larger than the
GPU's memory can run. The verdict comes first, then the problems, each with a hint.
On a CPU, which compiles a kernel for a second and more, one kernel of each kind is
tested; --full tests all of them anywhere, and products and attention of 1 to 512 rows.

With --tune it also measures which constants of the kernels are fastest on this device,
for the products of MODEL or those of a common model, and keeps them in the cache folder,
where every later run finds them. It takes some seconds on a GPU. What failed a self-test
before is tried anew.

A kernel that the driver crashed in is not used by later runs, nor tried by doctor, which
names it. --retry forgets this, and failed self-tests, and tries these kernels again.

With --kernels it prints instead, for each operation of MODEL, by which kernel a prompt's
rows and a row to decode run on the device, and why not by better ones. Nothing is
computed, and no weights are read.

Please put the whole output into a bug report. Your home folder shows as ~ in it.

Exit status: 0 leat can run here; 1 a kernel computes wrong, or no device works;
2 the command line is wrong.`,
		Example: `  leat doctor
  leat doctor --quick --device 1
  leat doctor --tune model.gguf
  leat doctor --kernels model.gguf
  leat doctor --disk /mnt/models --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.explain && len(args) == 0:
				return usageErrorf("doctor --kernels: MODEL is missing")
			case f.explain:
				return a.explainKernels(args[0], f.device, f.json)
			case len(args) > 0 && !f.tune:
				return usageErrorf("doctor takes a MODEL only with --tune or --kernels, found %q", args[0])
			}
			f.model = strings.Join(args, "")
			return f.run(cmd.Context(), a)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.device, "device", "", "GPU by index, name or UUID as \"leat devices\" prints them (default: the one with most VRAM)")
	fs.StringVar(&f.disk, "disk", "", "folder, or file, whose disk is measured (default: the cache folder)")
	fs.BoolVar(&f.quick, "quick", false, "measure speeds with an eighth of the bytes: faster, less exact")
	fs.BoolVar(&f.full, "full", false, "test all kernels on a CPU too, and products and attention of 1 to 512 rows; takes minutes")
	fs.BoolVar(&f.tune, "tune", false, "measure which constants of the kernels are fastest, and keep them")
	fs.BoolVar(&f.retry, "retry", false, "try kernels again that failed before or that the driver crashed in")
	fs.BoolVar(&f.explain, "kernels", false, "print which kernels MODEL runs by on the device, and why; nothing else")
	fs.BoolVar(&f.json, "json", false, "print as JSON, at the end")
	return cmd
}

type doctorFlags struct {
	device, disk      string
	quick, full, json bool
	tune, retry       bool
	explain           bool   // which kernels a model runs by, in place of an examination
	model             string // that is tuned for; "": a common one
}

// doctor is one examination: its parts, each of which keeps what it found for the report.
type doctor struct {
	app     *app
	found   *findings
	system  systemProbe
	device  testedDevice
	tests   kernelTests
	tuning  kernelTuning
	kept    keptProbe
	speeds  speedProbe
	verdict string // "": the examination was interrupted
}

func newDoctor(a *app, f *doctorFlags, out io.Writer, st *status) *doctor {
	d := &doctor{app: a, found: &findings{out: out, status: st, problems: []problem{}}}
	d.system = systemProbe{found: d.found, drivers: []driverReport{}}
	d.device = testedDevice{found: d.found, reports: []deviceReport{}}
	d.tests = kernelTests{found: d.found, device: &d.device, log: a.log, full: f.full, reports: []kernelReport{}}
	d.tuning = kernelTuning{app: a, found: d.found, device: &d.device, reports: []tunedReport{}}
	d.kept = keptProbe{found: d.found, device: &d.device, log: a.log, folder: a.cacheFolder(), variants: []variantReport{}}
	d.speeds = speedProbe{found: d.found, device: &d.device, kernels: kernels.Options{Logger: a.log, Cache: a.cacheFolder()}, quick: f.quick, reports: []speedReport{}}
	return d
}

// doctorReport is what --json prints.
type doctorReport struct {
	Program  versionInfo     `json:"program"`
	System   systemReport    `json:"system"`
	CPU      cpuReport       `json:"cpu"`
	Loader   *loaderReport   `json:"loader"` // null: none
	Drivers  []driverReport  `json:"drivers"`
	Devices  []deviceReport  `json:"devices"`
	Device   *int            `json:"device"` // index of the one tested; null: none
	Kernels  []kernelReport  `json:"kernels"`
	Variants []variantReport `json:"variants"`
	Cache    *cacheReport    `json:"cache"` // null: no device
	Tuned    []tunedReport   `json:"tuned"` // by --tune, now
	Speeds   []speedReport   `json:"speeds"`
	Problems []problem       `json:"problems"`
	Works    bool            `json:"works"`
	Verdict  string          `json:"verdict"`
}

// run examines this machine. What is found comes after the verdict, in order; until then a line on a terminal says what is
// done now, so that a driver that takes the whole process down leaves that on the screen.
func (f *doctorFlags) run(ctx context.Context, a *app) error {
	if f.tune && a.cached("kernels") == "" {
		return usageErrorf("--tune needs a cache folder to keep what it finds in, found none (or --no-cache)")
	}
	if f.quick && f.full {
		return usageErrorf("--quick and --full exclude each other")
	}
	var text bytes.Buffer
	st := a.newStatus()
	defer st.close()
	d := newDoctor(a, f, &text, st)
	d.examine(ctx, f)
	st.close()
	err := ctx.Err()
	if err == nil {
		d.conclude()
	}
	return cmp.Or(d.print(f.json, &text), err, d.found.failure)
}

// examine goes through the parts of an examination.
func (d *doctor) examine(ctx context.Context, f *doctorFlags) {
	defer d.device.closeInstance()
	d.system.examineProgram()
	d.system.examineVulkan(d.app.vulkan().LoaderPath)
	d.findDevices(f.device)
	if f.retry {
		d.kept.retry()
	}
	d.tests.run(ctx)
	if f.tune && ctx.Err() == nil {
		d.tuning.run(ctx, f.model)
	}
	if d.tests.ran() && ctx.Err() == nil {
		d.kept.examine()
	}
	if ctx.Err() == nil {
		d.speeds.measure(ctx, d.tests.ran(), f.disk)
	}
}

// findDevices lists the devices and chooses the one to test.
func (d *doctor) findDevices(name string) {
	if d.system.loader != nil {
		d.device.find(d.app.vulkan(), name)
	}
	switch chosen := d.device.chosen; {
	case chosen == nil:
		d.system.missingGPU()
	case chosen.Type == vk.CPU:
		d.system.missingGPU()
		d.found.warn(fmt.Sprintf("the device is the CPU (%s): all works, slowly", chosen.Name),
			"where there is a GPU, install its Vulkan driver; a container must be given the GPU (--gpus all, or --device /dev/dri)")
	case chosen.Type == vk.Discrete && !chosen.Features.MemoryBudget:
		d.found.warn("the driver does not say how much VRAM is free: leat takes nine tenths of all", "update the driver, or set --vram when other programs use the GPU")
	}
}

// conclude sums up what was found.
func (d *doctor) conclude() {
	switch n := len(d.found.problems); {
	case d.found.failure != nil:
		d.verdict = "leat can't run here: " + d.found.failure.Error()
	case d.device.chosen.Type == vk.CPU:
		d.verdict = fmt.Sprintf("leat runs here, slowly: the device is the CPU (%s)", d.device.chosen.Name)
	case n > 0:
		d.verdict = fmt.Sprintf("leat runs here, on %s, with %d %s", d.device.chosen.Name, n, plural(n, "problem"))
	default:
		d.verdict = fmt.Sprintf("leat runs here, on %s", d.device.chosen.Name)
	}
}

// print prints the verdict and the problems, then the text of all that was found. An interrupted examination has no verdict:
// its text is what was found so far, and it prints no JSON.
func (d *doctor) print(asJSON bool, text *bytes.Buffer) error {
	if asJSON {
		if d.verdict == "" {
			return nil
		}
		return d.app.printJSON(d.report())
	}
	if d.verdict != "" {
		d.found.out = d.app.out
		d.found.heading("%s", d.verdict)
		d.found.blank()
		d.found.printProblems()
		d.found.blank()
	}
	_, err := text.WriteTo(d.app.out)
	return err
}

func (d *doctor) report() *doctorReport {
	r := &doctorReport{
		Program: d.system.program, System: d.system.system, CPU: d.system.cpu, Loader: d.system.loader, Drivers: d.system.drivers,
		Devices: d.device.reports, Kernels: d.tests.reports, Variants: d.kept.variants, Cache: d.kept.cache, Tuned: d.tuning.reports,
		Speeds: d.speeds.reports, Problems: d.found.problems, Works: d.found.failure == nil, Verdict: d.verdict,
	}
	if d.device.chosen != nil {
		r.Device = &d.device.chosen.Index
	}
	return r
}
