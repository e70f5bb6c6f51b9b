package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"leat/decompose/pack"
	"leat/engine"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/calibrate"
	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/shaders"
	"leat/vk"
)

// openCalibration is what was measured of this machine before.
func (a *app) openCalibration() *calibrate.File {
	return calibrate.Open(a.cached("calibration.json"))
}

// cacheFolder is where what is found out about devices is kept; nil: nowhere.
func (a *app) cacheFolder() *cache.Folder { return cache.Open(a.cached("kernels")) }

// cached is a place in the user's cache folder; "" where there is none or it is not wanted.
func (a *app) cached(name string) string {
	dir, err := os.UserCacheDir()
	if err != nil || a.noCache {
		return ""
	}
	return filepath.Join(dir, "leat", name)
}

// matrixTypes lists the types of what kernels multiply with. The embedding is only looked
// up, but where it is the output matrix too.
func matrixTypes(m *pack.Model) (types []gguf.Type) {
	_, untied := m.Unit(pack.Head, -1)
	for i := range m.Units {
		if m.Units[i].Kind == pack.Embed && untied {
			continue
		}
		for _, t := range m.Units[i].Tensors {
			if len(t.Shape) == 2 && !slices.Contains(types, t.Type) {
				types = append(types, t.Type)
			}
		}
	}
	return types
}

func (f *modelFlags) kv() gguf.Type {
	for _, t := range shaders.KVTypes {
		if strings.EqualFold(t.String(), f.kvType) {
			return t
		}
	}
	return gguf.F16 // Load says what is wrong
}

// calibrated returns the speeds of a device of this machine for a model, measuring what is
// not known of it yet; the disk is nil where it is not known.
func (f *modelFlags) calibrated(ctx context.Context, a *app, known *calibrate.File, on *site, m *pack.Model) (predict.Speeds, *calibrate.Disk, error) {
	speeds, disk, _, err := f.calibratedAs(ctx, a, known, on, m)
	return speeds, disk, err
}

// calibratedAs is calibrated; key names the device to rehearsals.
func (f *modelFlags) calibratedAs(ctx context.Context, a *app, known *calibrate.File, on *site, m *pack.Model) (speeds predict.Speeds, disk *calibrate.Disk, key string, err error) {
	return f.calibratedIf(ctx, a, known, on, m, saysMeasuring(a))
}

// calibratedIf is calibratedAs where may says so; what it refuses is missing from the speeds, or an error.
func (f *modelFlags) calibratedIf(ctx context.Context, a *app, known *calibrate.File, on *site, m *pack.Model, may func() error) (speeds predict.Speeds, disk *calibrate.Disk, key string, err error) {
	if planned, _, err := on.planned(f.options(a), m); err == nil && planned.DiskBytes > 0 {
		known.ForgetDisks(diskAge)
	}
	if speeds, disk, key, err = f.rates(ctx, a, known, on, m, may); err != nil {
		return speeds, disk, key, err
	}
	if speeds.Rehearsal, err = f.rehearsed(ctx, a, known, key, on, m, f.options(a), may); err != nil {
		a.log.Info("the model is not rehearsed: its kernels are predicted by their rates", "error", err)
	}
	return speeds, disk, key, ctx.Err()
}

// diskAge is how old the measurement of a disk may be that a model streams from.
const diskAge = time.Hour

// site is a device of this machine, and what budgets there depend on.
type site struct {
	instance *vk.Instance
	device   *vk.PhysicalDevice
	machine  budget.Machine
}

// examine picks the device.
func (f *modelFlags) examine(ctx context.Context, a *app, instance *vk.Instance) (*site, error) {
	p, err := instance.Pick(f.device)
	if err != nil {
		return nil, err
	}
	on := &site{instance: instance, device: p}
	w, err := engine.RequestOf(f.options(a))
	if err != nil {
		return on, optionError(err)
	}
	on.machine, err = w.Examine(ctx, instance, p, a.log)
	return on, err
}

// planned is where the model would live.
func (on *site) planned(o engine.Options, m *pack.Model) (*plan.Plan, *arch.Hyper, error) {
	h, err := arch.Read(m)
	if err != nil {
		return nil, nil, err
	}
	b, err := budgetOf(o, &on.machine, h, m)
	if err != nil {
		return nil, nil, err
	}
	made, err := plan.Make(h, m, b)
	return made, h, err
}

// budgetOf is what a run with options o may spend on a machine.
func budgetOf(o engine.Options, on *budget.Machine, h *arch.Hyper, m *pack.Model) (plan.Budget, error) {
	w, err := engine.RequestOf(o)
	if err != nil {
		return plan.Budget{}, optionError(err)
	}
	return w.Budget(on, h, m), nil
}

// measured is as calibrated, but for what the engine would have to run.
func (f *modelFlags) measured(ctx context.Context, a *app, known *calibrate.File, on *site, m *pack.Model) (predict.Speeds, *calibrate.Disk, error) {
	speeds, disk, _, err := f.rates(ctx, a, known, on, m, saysMeasuring(a))
	return speeds, disk, err
}

// saysMeasuring tells the user once, before it takes time.
func saysMeasuring(a *app) func() error {
	var once sync.Once
	return func() error {
		once.Do(func() { fmt.Fprintln(a.err, "leat: measuring this machine, once: some seconds") })
		return nil
	}
}

// errNotNow is why nothing is measured while a person waits.
var errNotNow = errors.New("it is not the time to measure")

func notNow() error { return errNotNow }

// rates are what the parts of the machine reach by themselves; key names the device.
func (f *modelFlags) rates(ctx context.Context, a *app, known *calibrate.File, on *site, m *pack.Model, may func() error) (speeds predict.Speeds, disk *calibrate.Disk, key string, err error) {
	dev, err := on.instance.NewDevice(on.device, vk.DeviceOptions{OneQueue: f.oneQueue, Disable: f.disable, Enable: f.enable})
	if err != nil {
		return speeds, nil, "", err
	}
	key = calibrate.DeviceKey(dev)
	if t, err := kernels.LoadTuned(a.cacheFolder(), dev); err == nil {
		key += t.Stamp() // other kernels take other times
	}
	d, err := known.Device(ctx, dev, calibrate.Wanted{Types: matrixTypes(m), KV: f.kv(), Kernels: kernels.Options{Logger: a.log, Cache: a.cacheFolder()}}, a.log, may)
	if err = errors.Join(err, dev.Close()); err != nil { // before others want its memory
		return speeds, nil, "", err
	}
	if disk, err = known.Disk(ctx, m.Paths(), a.log, may); err != nil {
		if !errors.Is(err, errNotNow) {
			a.log.Warn("the disk is not measured", "error", err)
		}
		disk = nil
	}
	return calibrate.Speeds(d, disk, f.kv()), disk, key, ctx.Err()
}

// rehearsed is how long layers of the model take on the device that key names, in steps as o's plan has them. Where
// those can't be run, it is for steps as another plan had them.
func (f *modelFlags) rehearsed(ctx context.Context, a *app, known *calibrate.File, key string, on *site, m *pack.Model, o engine.Options, may func() error) (*predict.Rehearsal, error) {
	o.Tuning.Validate = false
	planned, h, err := on.planned(o, m)
	if err != nil {
		return nil, err
	}
	key += "/" + thisProgram() + "/" + predict.RehearsalKey(h, m, planned.KV.Type)
	r, err := known.Rehearsal(fmt.Sprintf("%s/%d", key, planned.Scratch.WeightBytes), planned.Chunk, a.log, func() (*predict.Rehearsal, error) {
		if err := may(); err != nil {
			return nil, err
		}
		return engine.Rehearse(ctx, m.Path, o)
	})
	if other := known.Rehearsed(key + "/"); err != nil && other != nil && ctx.Err() == nil {
		return other, nil
	}
	return r, err
}

// thisProgram tells builds apart, also those of one commit: each may run a model in a way of
// its own.
func thisProgram() string {
	v := readVersion()
	name := v.Version + v.Commit
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			name += fmt.Sprintf("-%x-%x", info.Size(), info.ModTime().UnixNano())
		}
	}
	return name
}

// predictor says what an answer should have taken; nil where that can't be told.
type predictor struct{ speeds predict.Speeds }

// newPredictor measures this machine where it must and may. A failure costs the prediction alone.
func (f *modelFlags) newPredictor(ctx context.Context, a *app, arg string, may func() error) *predictor {
	speeds, err := f.speedsFor(ctx, a, arg, may)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Info("there is no prediction", "error", err)
		}
		return nil
	}
	return &predictor{speeds}
}

func (f *modelFlags) speedsFor(ctx context.Context, a *app, arg string, may func() error) (s predict.Speeds, err error) {
	m, _, err := openModel(arg)
	if err != nil {
		return s, err
	}
	defer m.Close()
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		return s, err
	}
	defer instance.Close()
	on, err := f.examine(ctx, a, instance)
	if err != nil {
		return s, err
	}
	s, _, _, err = f.calibratedIf(ctx, a, a.openCalibration(), on, m, may)
	return s, err
}
