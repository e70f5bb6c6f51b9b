package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"leat/decompose/pack"
	"leat/engine"
	"leat/internal/arch"
	"leat/internal/bench"
	"leat/internal/budget"
	"leat/internal/calibrate"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/vk"
	"leat/vk/mem"
)

// bencher is one run of leat bench.
type bencher struct {
	f         *benchFlags
	a         *app
	status    *status
	path      string
	model     *pack.Model
	hyper     *arch.Hyper
	machine   budget.Machine
	budget    plan.Budget // of this machine, without limits
	speeds    *predict.Speeds
	rehearsed []*predict.Rehearsal // by configuration; nil: as in speeds
	sensor    pace.Sensor
	report    benchReport
	picked    *bench.Result // whose token is drawn
}

// newBencher opens the model, and learns all about the machine that must be known before
// the model takes it.
func (f *benchFlags) newBencher(ctx context.Context, a *app, arg string) (r *bencher, err error) {
	r = &bencher{f: f, a: a, status: a.newStatus()}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.path, err = modelPath(arg); err != nil {
		return r, err
	}
	if r.model, err = pack.Open(r.path); err != nil {
		return r, err
	}
	if r.hyper, err = arch.Read(r.model); err != nil {
		return r, fmt.Errorf("bench %s: %w", r.path, err)
	}
	if f.uses != "" && r.hyper.Experts.Count == 0 {
		return r, usageErrorf("--experts: %s has no experts to draw", filepath.Base(r.path))
	}
	r.report = benchReport{
		Format: benchFormat, Leat: readVersion(), Command: commandLine(), Started: time.Now().UTC().Truncate(time.Second),
		Model: benchModelOf(arg, r.model, r.hyper), Settings: f.settings(), Configurations: []benchConfig{},
	}
	r.report.Machine = readMachine(a)
	return r, r.examine(ctx)
}

// commandLine is how this program was called, without the name of its user.
func commandLine() []string {
	words := []string{"leat"}
	for _, word := range os.Args[1:] {
		words = append(words, tilde(word))
	}
	return words
}

// examine measures the device, if that was not done before.
func (r *bencher) examine(ctx context.Context) error {
	instance, err := vk.Open(r.a.vulkan())
	if err != nil {
		return explainLoader(err)
	}
	defer instance.Close()
	on, err := r.f.examine(ctx, r.a, instance)
	if err != nil {
		return err
	}
	p := on.device
	r.report.Device, r.machine = describe(p), on.machine
	if r.budget, err = budgetOf(r.options(benchConfig{}), &r.machine, r.hyper, r.model); err != nil {
		return err
	}
	if p.Type != vk.CPU {
		if r.sensor, err = pace.Find(pace.Device{VendorID: p.VendorID, PCI: p.PCI, UUID: p.UUID}); err != nil {
			r.report.note("the temperature can't be read: %v", err)
		}
	}
	known := r.a.openCalibration()
	if r.f.again {
		known.Forget()
	}
	if r.fromDisk(on) {
		known.ForgetDisks(0) // so that what is predicted is of this moment
	}
	speeds, disk, key, err := r.f.calibratedAs(ctx, r.a, known, on, r.model)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, vk.ErrDeviceLost):
		return err
	case err != nil:
		r.report.note("nothing is predicted, as the machine could not be measured: %v", err)
		return nil
	}
	r.speeds = &speeds
	r.report.Ceilings = ceilingsOf(&speeds, r.model)
	if disk == nil {
		r.report.note("the disk's ceiling is not known: the file is too small to measure")
	}
	return r.rehearse(ctx, known, key, on)
}

// rehearse has the model rehearsed for each configuration whose prompts bring weights into halves by other slices than
// the plan without limits: less VRAM has shorter ones, and their products fill the device less. They are rehearsed with
// all VRAM, as few layers fit into little.
func (r *bencher) rehearse(ctx context.Context, known *calibrate.File, key string, on *site) error {
	list, err := r.quietly()
	if err != nil || !slices.ContainsFunc(r.f.tests(), func(t bench.Test) bool { return t.Prompt > 0 }) {
		return nil // what is wrong is said later
	}
	say := func() error {
		r.status.say("rehearsing steps as they run with less VRAM")
		return nil
	}
	r.rehearsed = make([]*predict.Rehearsal, len(list))
	for i := range list {
		made, _, err := on.planned(r.options(list[i]), r.model)
		if err != nil || made.Scratch.WeightBytes == 0 {
			continue
		}
		o := r.options(benchConfig{})
		o.Tuning.Layout.Halves, o.Tuning.Chunk = made.Scratch.WeightBytes, made.Chunk
		if r.rehearsed[i], err = r.f.rehearsed(ctx, r.a, known, key, on, r.model, o, say); err != nil {
			r.a.log.Info("the model is not rehearsed as it runs with less VRAM", "error", err)
		}
	}
	return ctx.Err()
}

// quietly asks for the configurations before it is time to say what of them is not as it was asked for.
func (r *bencher) quietly() ([]benchConfig, error) {
	notes := r.report.Notes
	defer func() { r.report.Notes = notes }()
	return r.configurations()
}

// fromDisk reports whether some configuration reads weights from disk for each token.
func (r *bencher) fromDisk(on *site) bool {
	list, err := r.quietly()
	if err != nil {
		return false // said later
	}
	for _, c := range list {
		if made, _, err := on.planned(r.options(c), r.model); err == nil && made.DiskBytes > 0 {
			return true
		}
	}
	return false
}

// ceilingsOf is what each lane can do with this model's bytes.
func ceilingsOf(s *predict.Speeds, m *pack.Model) bench.Ceilings {
	_, untied := m.Unit(pack.Head, -1)
	bytes, seconds := 0.0, 0.0
	for i := range m.Units {
		if m.Units[i].Kind == pack.Embed && untied {
			continue
		}
		for _, t := range m.Units[i].Tensors {
			if rate := s.Kernels.TypeBytesPerSec[t.Type]; rate > 0 && len(t.Shape) == 2 {
				bytes, seconds = bytes+float64(t.Bytes), seconds+float64(t.Bytes)/rate
			}
		}
	}
	c := bench.Ceilings{Disk: s.Disk.BytesPerSec, DiskFirst: s.Disk.FirstBytesPerSec, Link: s.Link.BytesPerSec}
	if seconds > 0 {
		c.VRAM = bytes / seconds
	}
	return c
}

func (r *bencher) close() error {
	r.status.close()
	var errs []error
	if r.sensor != nil {
		errs = append(errs, r.sensor.Close())
	}
	if r.model != nil {
		errs = append(errs, r.model.Close())
	}
	r.sensor, r.model = nil, nil
	return errors.Join(errs...)
}

// options are the engine's for one configuration.
func (r *bencher) options(c benchConfig) engine.Options {
	o := r.f.options(r.a)
	o.DeviceBytes, o.Tuning.Layout.RingBytes = c.VRAM, c.Ring
	if c.RAM > 0 {
		o.HostBytes = c.RAM
	}
	if need := bench.Tokens(r.f.tests()); o.ContextLength == 0 {
		o.ContextLength = (need + 255) / 256 * 256
	}
	return o
}

// configurations are the budgets to run within.
func (r *bencher) configurations() ([]benchConfig, error) {
	if len(r.f.tiers) > 0 {
		return r.tierConfigurations()
	}
	vrams, rings := r.f.vrams, r.f.rings
	if len(vrams) == 0 {
		vrams = sizesFlag{0}
	}
	if len(rings) == 0 {
		rings = sizesFlag{0}
	}
	var list []benchConfig
	for _, v := range vrams {
		for _, ring := range rings {
			list = append(list, benchConfig{VRAM: v, RAM: int64(r.f.ram), Ring: ring})
		}
	}
	return list, nil
}

// runAll measures each configuration. One that can't hold the model is noted; any other
// failure ends the run.
func (r *bencher) runAll(ctx context.Context) error {
	list, err := r.configurations()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return withHint(fmt.Errorf("no tier fits here: %s", strings.Join(r.report.Notes, "; ")), "\"leat bench --tier list\" names smaller ones; \"leat devices\" shows what is here")
	}
	var refused error
	for i, c := range list {
		err := r.one(ctx, &c, i, len(list))
		if len(c.Rows) > 0 || c.Error != "" {
			r.report.Configurations = append(r.report.Configurations, c)
		}
		var small *engine.BudgetError
		switch {
		case ctx.Err() != nil:
			r.report.Interrupted = true
			return ctx.Err()
		case errors.As(err, &small):
			refused = err
		case err != nil:
			return optionError(err)
		}
	}
	if len(list) == 1 {
		return refused
	}
	return nil
}

// one measures one configuration.
func (r *bencher) one(ctx context.Context, c *benchConfig, i, of int) error {
	prefix := ""
	if of > 1 {
		prefix = fmt.Sprintf("[%d of %d, %s] ", i+1, of, c.name())
	}
	o := bench.Options{
		Path: r.path, Engine: r.options(*c), Tests: r.f.tests(), Repetitions: r.f.repetitions, Limit: r.f.limit,
		Ceilings: r.report.Ceilings, Speeds: r.speeds, Sensor: r.sensor,
		Doing: func(what string) { r.status.say(prefix + what) },
		Done: func(row *bench.Row) {
			r.status.done(fmt.Sprintf("%s%s: %s tok/s", prefix, row.Test, formatSpeed(row.PerSec.Median)))
		},
	}
	if i < len(r.rehearsed) && r.rehearsed[i] != nil && r.speeds != nil {
		s := *r.speeds
		s.Rehearsal = r.rehearsed[i]
		o.Speeds = &s
	}
	o.Ops, o.Uses = r.f.ops, r.f.uses != ""
	c.emulated(&o)
	if (r.f.timeline != "" || r.f.trace != "") && r.picked == nil {
		o.TraceTokens = traceTokens
	}
	res, err := bench.Run(ctx, o)
	c.Result = *res
	if err != nil && ctx.Err() == nil {
		c.Error = strings.ReplaceAll(err.Error(), r.path, r.report.Model.Name)
	}
	if o.TraceTokens > 0 && len(res.Spans) > 0 {
		r.picked = res
	}
	return err
}

// traceTokens are enough to see how one goes into the next.
const traceTokens = 8

func readMachine(a *app) benchMachine {
	m := benchMachine{CPU: readCPU()}
	m.OS, m.Kernel = readOS()
	var err error
	if m.CPU.RAMBytes, m.CPU.AvailableBytes, err = mem.RAM(); err != nil {
		a.log.Warn("host memory is unknown", "error", err)
	}
	return m
}
