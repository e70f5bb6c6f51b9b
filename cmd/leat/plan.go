package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"leat/decompose/pack"
	"leat/engine"
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/calibrate"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/predict/gpus"
	"leat/vk"
)

func init() { commands = append(commands, newPlanCmd) }

// planFlags are the flags of leat plan.
type planFlags struct {
	modelFlags
	gpu                        string
	disk, link, memory, tflops float64
	tokens                     float64
	prompt, depth              int
	json, again, train         bool
	rank, gpus                 int
	given                      func(flag string) bool
}

const planLong = `Say where a model's weights will live and how fast it will run, before anything is loaded.

Without --gpu this machine is measured, once, in some seconds: its disk where the
model lies, its link, its kernels. The figures are kept in the cache folder; --again
measures anew.

With --gpu the machine is another one, told by its data sheet (--gpu list names them).
What leat reaches there is an estimate. --disk-gbps and --link-gbps are what is reached,
as leat doctor measures it; --mem-gbps and --tflops are a data sheet's peaks. With both of
them and --vram, no --gpu is needed.

--tokens N asks for the least VRAM that decodes N tokens a second. A budget that can't
hold the model is refused, with one that does.

--train shows what fine-tuning an adapter over streamed weights would cost: per layer, from
how many tokens in a step streaming is free, for each kind of disk. It takes any model.

Exit status: 0 there is a plan; 1 the budget can't hold the model, or it can't be read;
2 the command line is wrong.`

const planExample = `  leat plan demo
  leat plan llama-70b.gguf --gpu "RTX 4090" --ram 64GiB
  leat plan llama-70b.gguf --gpu 3060 --disk-gbps 3.5 --tokens 2
  leat plan llama-70b.gguf --gpu "RTX 4090" --train --gpus 2`

func newPlanCmd(a *app) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:     "plan MODEL",
		Short:   "Say where a model's weights will live and how fast it will run",
		Long:    planLong,
		Example: planExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.gpu == "list" {
				return nil
			}
			return wants("MODEL")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.gpu == "list" {
				return f.list(a)
			}
			return f.run(cmd.Context(), a, args[0])
		},
	}
	fs := cmd.Flags()
	f.register(fs)
	fs.StringVar(&f.gpu, "gpu", "", "plan for this GPU instead, by any part of its name; \"list\" names those known")
	fs.Float64Var(&f.disk, "disk-gbps", 0, "GB/s the disk reads (default: measured; with --gpu, 7: one PCIe 4 drive)")
	fs.Float64Var(&f.link, "link-gbps", 0, "GB/s that uploads reach (default: measured; with --gpu, by its PCIe)")
	fs.Float64Var(&f.memory, "mem-gbps", 0, "GB/s of the GPU's memory by its data sheet; needs --gpu, or --tflops and --vram")
	fs.Float64Var(&f.tflops, "tflops", 0, "FP32 TFLOPS of the GPU by its data sheet; needs --gpu, or --mem-gbps and --vram")
	fs.Float64VarP(&f.tokens, "tokens", "n", 0, "tokens a second to reach: how much VRAM does it take?")
	fs.IntVarP(&f.prompt, "prompt", "p", 512, "tokens of the prompt whose time is predicted")
	fs.IntVar(&f.depth, "depth", 0, "tokens in the session while decoding (default: half the context, 1024 at most)")
	fs.BoolVar(&f.again, "again", false, "measure this machine again")
	fs.BoolVar(&f.train, "train", false, "plan the fine-tuning of an adapter instead")
	fs.IntVar(&f.rank, "rank", 64, "with --train: the adapter's rank")
	fs.IntVar(&f.gpus, "gpus", 1, "with --train: GPUs that share the layers and the disk")
	fs.BoolVar(&f.json, "json", false, "print as JSON")
	f.given = fs.Changed
	return cmd
}

func (f *planFlags) check() error {
	for name, v := range map[string]float64{"disk-gbps": f.disk, "link-gbps": f.link, "mem-gbps": f.memory, "tflops": f.tflops, "tokens": f.tokens} {
		if f.given(name) && !(v > 0 && v < 1e9) {
			return usageErrorf("--%s: found %g, wanted more than 0", name, v)
		}
	}
	for name, v := range map[string]int{"prompt": f.prompt, "rank": f.rank, "gpus": f.gpus} {
		if v < 1 || v > 1<<20 {
			return usageErrorf("--%s: found %d, wanted 1 or more", name, v)
		}
	}
	if f.depth < 0 {
		return usageErrorf("--depth: found %d, wanted 0 (chosen) or more", f.depth)
	}
	if f.gpu == "" && (f.memory > 0) != (f.tflops > 0) {
		return usageErrorf("--mem-gbps and --tflops describe a GPU together; or --gpu names one, of which they change a part")
	}
	if f.gpu == "" && f.memory > 0 && f.vram == 0 {
		return usageErrorf("a GPU that is described by --mem-gbps and --tflops needs its --vram")
	}
	if f.gpu != "" && f.device != "" {
		return usageErrorf("--gpu is a machine elsewhere and --device one here: they exclude each other")
	}
	if !f.train && (f.given("rank") || f.given("gpus")) {
		return usageErrorf("--rank and --gpus belong to --train")
	}
	return nil
}

func (f *planFlags) run(ctx context.Context, a *app, arg string) error {
	if err := f.check(); err != nil {
		return err
	}
	m, path, err := openModel(arg)
	if err != nil {
		return err
	}
	defer m.Close()
	if f.train {
		return f.runTraining(ctx, a, arg, m)
	}
	h, err := a.examine(m)
	if err != nil {
		return fmt.Errorf("plan %s: %w", path, err)
	}
	mach, err := f.machine(ctx, a, h, m)
	if err != nil {
		return err
	}
	r, err := f.answer(arg, h, m, mach)
	if err != nil {
		return fmt.Errorf("plan %s: %w", path, err)
	}
	if f.json {
		return a.printJSON(r)
	}
	r.print(a.out)
	return nil
}

// machine is what a plan is for.
type machine struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"`  // where the speeds are from
	Kernels string    `json:"kernels"` // how their time is predicted
	GPU     *gpus.GPU `json:"data_sheet,omitempty"`
	DiskAs  string    `json:"disk"`
	Disks   int       `json:"disks"`   // that the model is striped over
	Assumed []string  `json:"assumed"` // figures that were neither measured here nor given: fields of speeds, ram_budget_bytes
	speeds  predict.Speeds
	budget  plan.Budget
	within  func(deviceBytes int64) (plan.Budget, error) // what a run there may spend that is given so much VRAM; 0: as here
}

// How the time of kernels is predicted.
const (
	kernelsRehearsed = "rehearsed with layers of this model"
	kernelsByRates   = "by the rates of each kind"
)

// What may be assumed, as JSON names it.
const (
	assumesDisk   = "disk_bytes_per_second"
	assumesLink   = "link_bytes_per_second"
	assumesDevice = "device_bytes_per_second"
	assumesFlops  = "flops"
	assumesRAM    = "ram_budget_bytes"
)

// is says that a figure is not assumed.
func (mach *machine) is(figure string) {
	mach.Assumed = slices.DeleteFunc(mach.Assumed, func(s string) bool { return s == figure })
}

// as marks a figure that is assumed.
func (mach *machine) as(figure string) string {
	if slices.Contains(mach.Assumed, figure) {
		return " (assumed)"
	}
	return ""
}

// assumedDisk, in GB/s, is that of a GPU of which only the name is known.
const assumedDisk = 7.0

func (f *planFlags) machine(ctx context.Context, a *app, h *arch.Hyper, m *pack.Model) (*machine, error) {
	mach, err := f.base(ctx, a, h, m)
	if err != nil {
		return nil, err
	}
	if f.disk > 0 {
		mach.speeds.Disk.BytesPerSec, mach.speeds.Disk.FirstBytesPerSec, mach.DiskAs = f.disk*1e9, 0, "given"
		mach.is(assumesDisk)
	}
	if f.link > 0 {
		mach.speeds.Link.BytesPerSec, mach.speeds.Link.BusyBytesPerSec, mach.speeds.Link.Bursts = f.link*1e9, f.link*1e9, nil
		mach.is(assumesLink)
	}
	return mach, nil
}

func (f *planFlags) base(ctx context.Context, a *app, h *arch.Hyper, m *pack.Model) (*machine, error) {
	g := gpus.GPU{Name: "the GPU described", VRAMBytes: int64(f.vram), PCIe: 4, Lanes: 16, Source: "flags"}
	switch {
	case f.gpu != "":
		var err error
		if g, err = gpus.Find(f.gpu); err != nil {
			var missing *gpus.NotFoundError
			errors.As(err, &missing)
			return nil, &usageError{text: "--gpu: " + err.Error(), hint: missing.Hint()}
		}
	case f.memory == 0:
		return f.here(ctx, a, h, m)
	}
	if f.memory > 0 {
		g.MemBytesPerSec = f.memory * 1e9
	}
	if f.tflops > 0 {
		g.FP32 = f.tflops * 1e12
		g.BF16 = max(g.BF16, g.FP32)
	}
	mach := &machine{
		Name: g.Name, Source: "its data sheet: an estimate", Kernels: kernelsByRates, GPU: &g, DiskAs: "assumed", Disks: 1,
		speeds: predict.FromDataSheet(&g, assumedDisk*1e9),
	}
	mach.Assumed = []string{assumesDisk, assumesLink, assumesDevice, assumesFlops, assumesRAM}
	if f.ram > 0 {
		mach.is(assumesRAM)
	}
	o, on := f.elsewhere(a, &g, 0)
	return mach, mach.plans(o, &on, h, m)
}

// elsewhere is a machine with that GPU, and what the flags allow there. Where it has one memory with the CPU, --ram is all of that: else it
// would be counted twice.
func (f *modelFlags) elsewhere(a *app, g *gpus.GPU, ramBytes int64) (engine.Options, budget.Machine) {
	o := f.options(a)
	if g.UMA && o.HostBytes > 0 {
		ramBytes, o.HostBytes = o.HostBytes, 0
	}
	return o, budget.OfGPU(g, ramBytes)
}

// plans sets what a model may spend on the machine.
func (mach *machine) plans(o engine.Options, on *budget.Machine, h *arch.Hyper, m *pack.Model) (err error) {
	mach.within = func(deviceBytes int64) (plan.Budget, error) {
		o := o
		if deviceBytes > 0 {
			o.DeviceBytes = deviceBytes
		}
		return budgetOf(o, on, h, m)
	}
	mach.budget, err = mach.within(0)
	return err
}

// here is this machine, measured.
func (f *planFlags) here(ctx context.Context, a *app, h *arch.Hyper, m *pack.Model) (*machine, error) {
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		err = explainLoader(err)
		return nil, withHint(err, "%s; or --gpu NAME plans for a GPU by its data sheet, with no Vulkan here", hintFor(err))
	}
	defer instance.Close()
	on, err := f.examine(ctx, a, instance)
	if err != nil {
		return nil, err
	}
	mach := &machine{Name: on.device.Name, Source: "measured", Kernels: kernelsByRates, DiskAs: "measured", Disks: 1, Assumed: []string{}}
	if err := mach.plans(f.options(a), &on.machine, h, m); err != nil {
		return nil, err
	}
	known := a.openCalibration()
	if f.again {
		known.Forget()
	}
	measure := f.calibrated
	if f.train { // what trains is not what runs: any architecture will do
		measure = f.measured
	}
	speeds, disk, err := measure(ctx, a, known, on, m)
	if err != nil {
		return nil, err
	}
	mach.speeds = speeds
	if disks, err := calibrate.Disks(m.Paths()); err == nil {
		mach.Disks = max(1, len(disks))
	}
	if speeds.Rehearsal.Sound() {
		mach.Kernels = kernelsRehearsed
	}
	switch {
	case disk == nil:
		mach.speeds.Disk.BytesPerSec, mach.DiskAs = assumedDisk*1e9, "assumed: the file is too small to measure"
		mach.Assumed = append(mach.Assumed, assumesDisk)
	case !disk.Direct:
		mach.DiskAs = "measured through the page cache"
	}
	return mach, nil
}

// list prints the GPUs that are known.
func (f *planFlags) list(a *app) error {
	all := gpus.All()
	if f.json {
		return a.printJSON(all)
	}
	for _, g := range all {
		link := "one memory with the CPU"
		if !g.UMA {
			link = fmt.Sprintf("PCIe %d x%d", g.PCIe, g.Lanes)
		}
		if g.P2P {
			link += ", reads from NVMe past the CPU"
		}
		fmt.Fprintf(a.out, "%-22s %4.0f GiB %6.0f GB/s %6.1f TFLOPS  %s\n", g.Name, float64(g.VRAMBytes)/(1<<30), g.MemBytesPerSec/1e9, g.FP32/1e12, link)
	}
	return nil
}
