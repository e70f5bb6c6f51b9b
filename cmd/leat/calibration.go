package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"leat/decompose/pack"
	"leat/engine/calibrate"
	"leat/engine/plan"
	"leat/gguf"
	"leat/vk"
)

// openCalibration is what was measured of this machine before.
func openCalibration() *calibrate.File {
	dir, err := os.UserCacheDir()
	if err != nil {
		return calibrate.Open("")
	}
	return calibrate.Open(filepath.Join(dir, "leat", "calibration.json"))
}

// largestFile is the file of a model that tells most about its disk.
func largestFile(m *pack.Model) string {
	best, most := m.Path, int64(-1)
	for _, name := range m.Files {
		if info, err := os.Stat(name); err == nil && info.Size() > most {
			best, most = name, info.Size()
		}
	}
	return best
}

// drives are the files of a model that tell of its disks, one of each: a striped pack has several.
func drives(m *pack.Model) []string {
	for _, parts := range m.Parts {
		if len(parts) > 1 {
			return parts
		}
	}
	return []string{largestFile(m)}
}

// disks is how fast the drives of a model read together; nil where that can't be told.
func disks(ctx context.Context, known *calibrate.File, m *pack.Model, log *slog.Logger, measuring func()) (*calibrate.Disk, error) {
	var sum *calibrate.Disk
	seen := map[string]bool{}
	for _, path := range drives(m) {
		key, err := known.DiskKey(path)
		if err != nil {
			return nil, err
		}
		if seen[key] {
			continue // two folders on one drive are no faster than one
		}
		seen[key] = true
		d, err := known.Disk(ctx, path, log, measuring)
		if err != nil || d == nil {
			return nil, err
		}
		if sum == nil {
			one := *d
			sum = &one
			continue
		}
		sum.BytesPerSec += d.BytesPerSec
		sum.Direct = sum.Direct && d.Direct
	}
	return sum, nil
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
	if f.kvType == "f32" {
		return gguf.F32
	}
	return gguf.F16
}

// calibrated returns the speeds of a device of this machine for a model, measuring what is
// not known of it yet.
func (f *modelFlags) calibrated(ctx context.Context, a *app, known *calibrate.File, instance *vk.Instance, p *vk.PhysicalDevice, m *pack.Model) (speeds plan.Speeds, disk *calibrate.Disk, err error) {
	said := false
	measuring := func() {
		if !said {
			fmt.Fprintln(a.err, "leat: measuring this machine, once: some seconds")
		}
		said = true
	}
	dev, err := instance.NewDevice(p, vk.DeviceOptions{OneQueue: f.oneQueue, Disable: f.disable})
	if err != nil {
		return speeds, nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	d, err := known.Device(ctx, dev, calibrate.Wanted{Types: matrixTypes(m), KV: f.kv()}, a.log, measuring)
	if err != nil {
		return speeds, nil, err
	}
	if disk, err = disks(ctx, known, m, a.log, measuring); err != nil {
		a.log.Warn("the disk is not measured", "error", err)
		disk, err = nil, nil
	}
	return calibrate.Speeds(d, disk, f.kv()), disk, err
}

// predictor says what an answer should have taken; nil where that can't be told.
type predictor struct{ speeds plan.Speeds }

// newPredictor measures this machine where it must. A failure costs the prediction alone.
func (f *modelFlags) newPredictor(ctx context.Context, a *app, arg string) *predictor {
	speeds, err := f.speedsFor(ctx, a, arg)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Info("there is no prediction", "error", err)
		}
		return nil
	}
	return &predictor{speeds}
}

func (f *modelFlags) speedsFor(ctx context.Context, a *app, arg string) (s plan.Speeds, err error) {
	path, err := a.modelPath(arg)
	if err != nil {
		return s, err
	}
	m, err := pack.Open(path)
	if err != nil {
		return s, err
	}
	defer m.Close()
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		return s, err
	}
	defer instance.Close()
	p, err := instance.Pick(f.device)
	if err != nil {
		return s, err
	}
	s, _, err = f.calibrated(ctx, a, openCalibration(), instance, p, m)
	return s, err
}
