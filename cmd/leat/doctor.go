package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"leat/vk"
)

func init() { commands = append(commands, newDoctorCmd) }

func newDoctorCmd(a *app) *cobra.Command {
	d := &doctor{app: a}
	cmd := &cobra.Command{
		Use:   "doctor [--tune [MODEL]] [--retry]",
		Short: "Examine this machine, and print what a bug report needs",
		Long: `Examine this machine: the Vulkan loader, drivers, layers and devices, each kernel
against its reference, and the speeds that decide how fast a model larger than the
GPU's memory can run. The verdict comes first, then the problems, each with a hint.
On a CPU, which compiles a kernel for a second and more, one kernel of each kind is
tested; --full tests all of them, with all cases, anywhere.

With --tune it also measures which constants of the kernels are fastest on this device,
for the products of MODEL or those of a common model, and keeps them in the cache folder,
where every later run finds them. It takes some seconds on a GPU. What failed a self-test
before is tried anew.

A kernel that the driver crashed in is not used by later runs, nor tried by doctor, which
names it. --retry forgets this, and failed self-tests, and tries these kernels again.

Please put the whole output into a bug report. Your home folder shows as ~ in it.

Exit status: 0 leat can run here; 1 a kernel computes wrong, or no device works;
2 the command line is wrong.`,
		Example: `  leat doctor
  leat doctor --quick --device 1
  leat doctor --tune model.gguf
  leat doctor --disk /mnt/models --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !d.tune {
				return usageErrorf("doctor takes a MODEL only with --tune, found %q", args[0])
			}
			d.model = strings.Join(args, "")
			return d.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&d.device, "device", "", "GPU by index, name or UUID as \"leat devices\" prints them (default: the one with most VRAM)")
	fs.StringVar(&d.disk, "disk", "", "folder, or file, whose disk is measured (default: the cache folder)")
	fs.BoolVar(&d.quick, "quick", false, "measure speeds with an eighth of the bytes: faster, less exact")
	fs.BoolVar(&d.full, "full", false, "test the kernels with all cases, not a few each; takes minutes")
	fs.BoolVar(&d.tune, "tune", false, "measure which constants of the kernels are fastest, and keep them")
	fs.BoolVar(&d.retry, "retry", false, "try kernels again that failed before or that the driver crashed in")
	fs.BoolVar(&d.json, "json", false, "print as JSON, at the end")
	return cmd
}

// doctor is one examination. What it finds comes after the verdict, in order; until then it says at
// a terminal what it does, so that a driver that takes the whole process down leaves that on the screen.
type doctor struct {
	app               *app
	device, disk      string
	quick, full, json bool
	tune, retry       bool
	model             string // that is tuned for; "": a common one
	out               io.Writer
	report            doctorReport
	failure           error // the first fatal problem
	status            *status
	instance          *vk.Instance
	chosen            *vk.PhysicalDevice
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

// problem is what is wrong, and what to do about it. With a fatal one leat can't run.
type problem struct {
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"`
	Fatal bool   `json:"fatal"`
}

func (d *doctor) run(ctx context.Context) error {
	if d.tune && d.app.cached("kernels") == "" {
		return usageErrorf("--tune needs a cache folder to keep what it finds in, found none (or --no-cache)")
	}
	if d.quick && d.full {
		return usageErrorf("--quick and --full exclude each other")
	}
	var found bytes.Buffer
	d.out, d.status = &found, d.app.newStatus()
	defer d.status.close()
	d.report = doctorReport{Drivers: []driverReport{}, Devices: []deviceReport{}, Kernels: []kernelReport{}, Variants: []variantReport{}, Tuned: []tunedReport{}, Speeds: []speedReport{}, Problems: []problem{}}
	for _, part := range []func(context.Context){d.program, d.vulkan, d.devices, d.retryKernels, d.selfTest, d.tuneKernels, d.variants, d.speeds} {
		part(ctx)
		if ctx.Err() != nil {
			break
		}
	}
	if d.instance != nil {
		if err := d.instance.Close(); err != nil {
			d.warn(err.Error(), "")
		}
	}
	d.status.close()
	err := ctx.Err()
	if err == nil {
		d.conclude()
	}
	return cmp.Or(d.print(&found), err, d.failure)
}

// conclude sums up what was found.
func (d *doctor) conclude() {
	d.report.Works = d.failure == nil
	switch n := len(d.report.Problems); {
	case !d.report.Works:
		d.report.Verdict = "leat can't run here: " + d.failure.Error()
	case d.chosen.Type == vk.CPU:
		d.report.Verdict = fmt.Sprintf("leat runs here, slowly: the device is the CPU (%s)", d.chosen.Name)
	case n > 0:
		d.report.Verdict = fmt.Sprintf("leat runs here, on %s, with %d %s", d.chosen.Name, n, plural(n, "problem"))
	default:
		d.report.Verdict = fmt.Sprintf("leat runs here, on %s", d.chosen.Name)
	}
}

// print prints the verdict and the problems, then all that was found; of an examination that was interrupted, what was
// found so far.
func (d *doctor) print(found *bytes.Buffer) error {
	if d.json {
		if d.report.Verdict == "" {
			return nil
		}
		return d.app.printJSON(&d.report)
	}
	d.out = d.app.out
	if d.report.Verdict != "" {
		d.heading("%s", d.report.Verdict)
		d.blank()
		d.printProblems()
		d.blank()
	}
	_, err := found.WriteTo(d.app.out)
	return err
}

// say tells at a terminal what is done now.
func (d *doctor) say(format string, args ...any) {
	if d.status != nil && d.status.terminal {
		d.status.say(fmt.Sprintf(format, args...))
	}
}

// warn notes a problem that leat can live with.
func (d *doctor) warn(what, hint string) {
	d.report.Problems = append(d.report.Problems, problem{What: what, Hint: hint})
}

// fail notes a problem that leat can't live with.
func (d *doctor) fail(err error) {
	d.report.Problems = append(d.report.Problems, problem{What: err.Error(), Hint: hintFor(err), Fatal: true})
	if d.failure == nil {
		d.failure = err
	}
}

func (d *doctor) heading(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *doctor) field(label, format string, args ...any) {
	printField(d.out, label, fmt.Sprintf(format, args...))
}

func (d *doctor) blank() { fmt.Fprintln(d.out) }

func (d *doctor) printProblems() {
	if len(d.report.Problems) == 0 {
		d.heading("No problems found.")
		return
	}
	d.heading("Problems")
	for n, p := range d.report.Problems {
		fmt.Fprintf(d.out, "%4d %s\n", n+1, p.What)
		if p.Hint != "" {
			fmt.Fprintf(d.out, "     hint: %s\n", p.Hint)
		}
	}
}

// devices lists the devices and chooses the one to test.
func (d *doctor) devices(context.Context) {
	if d.report.Loader != nil {
		d.findDevices()
	}
	switch {
	case d.chosen == nil:
		d.missingGPU()
	case d.chosen.Type == vk.CPU:
		d.missingGPU()
		d.warn(fmt.Sprintf("the device is the CPU (%s): all works, slowly", d.chosen.Name),
			"where there is a GPU, install its Vulkan driver; a container must be given the GPU (--gpus all, or --device /dev/dri)")
	case d.chosen.Type == vk.Discrete && !d.chosen.Features.MemoryBudget:
		d.warn("the driver does not say how much VRAM is free: leat takes nine tenths of all", "update the driver, or set --vram when other programs use the GPU")
	}
}

func (d *doctor) findDevices() {
	var err error
	if d.instance, err = vk.Open(d.app.vulkan()); err != nil {
		d.fail(err)
		return
	}
	best, bestErr := d.instance.Pick("")
	if d.chosen, err = d.instance.Pick(d.device); err != nil {
		d.fail(err)
	} else {
		d.report.Device = &d.chosen.Index
	}
	for _, p := range d.instance.PhysicalDevices() {
		r := describe(p)
		r.Default = bestErr == nil && p == best
		d.report.Devices = append(d.report.Devices, r)
		r.print(d.out, true)
	}
}

// openDevice opens the chosen device; nil, with the problem noted, where it fails.
func (d *doctor) openDevice(o vk.DeviceOptions) *vk.Device {
	dev, err := d.instance.NewDevice(d.chosen, o)
	if err != nil {
		d.fail(err)
		return nil
	}
	return dev
}

func (d *doctor) closeDevice(dev *vk.Device) {
	if err := dev.Close(); err != nil && !errors.Is(err, vk.ErrDeviceLost) {
		d.warn(err.Error(), "")
	}
}
