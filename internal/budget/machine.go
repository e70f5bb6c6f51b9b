package budget

import (
	"context"
	"errors"
	"log/slog"

	"leat/internal/kernels"
	"leat/internal/predict/gpus"
	"leat/vk"
	"leat/vk/mem"
)

// Machine is what a budget depends on: this machine as [Wishes.Examine] finds it, or another one by [Of].
type Machine struct {
	FreeBytes               int64      // of the device's memory
	AvailableBytes          int64      // of RAM; 0: not known
	UMA                     bool       // the device's memory is a part of RAM
	CPU                     bool       // the device is the CPU itself
	Shared                  mem.Shared // the memory in which the device reads weights where the host has them, if it can
	Matrices, FewRowKernels bool       // kernels that the device has, see [plan.Budget]
}

// Of is a machine with GPU g and that much RAM; 0: what machines with such a GPU usually have. A desktop, the driver and the system take some.
func Of(g *gpus.GPU, ramBytes int64) Machine {
	m := Machine{FreeBytes: g.VRAMBytes / 16 * 15, UMA: g.UMA, Matrices: g.Matrices(), FewRowKernels: true}
	if ramBytes == 0 {
		ramBytes = g.RAMBytes()
	}
	m.AvailableBytes = ramBytes / 8 * 7
	if g.UMA { // the device may have a share of the one memory, and reads all of it
		share := float64(g.VRAMBytes) / float64(max(1, g.RAMBytes()))
		m.FreeBytes, m.Shared = min(int64(share*float64(ramBytes)), m.AvailableBytes), mem.Imported
	}
	return m
}

// Examine looks at a device of this machine, as it is now. Where weights may be read in place it opens the device to try how.
func (w *Wishes) Examine(ctx context.Context, inst *vk.Instance, p *vk.PhysicalDevice, log *slog.Logger) (Machine, error) {
	return w.examine(p, log, func() (kind mem.Shared, err error) {
		dev, err := inst.NewDevice(p, vk.DeviceOptions{OneQueue: w.OneQueue, Disable: w.Disable, Enable: w.Enable})
		if err != nil {
			return mem.NotShared, err
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		return mem.ProbeShared(ctx, dev)
	})
}

// ExamineOpen is Examine of a device that is open.
func (w *Wishes) ExamineOpen(ctx context.Context, dev *vk.Device, log *slog.Logger) (Machine, error) {
	return w.examine(dev.Physical, log, func() (mem.Shared, error) { return mem.ProbeShared(ctx, dev) })
}

func (w *Wishes) examine(p *vk.PhysicalDevice, log *slog.Logger, probe func() (mem.Shared, error)) (Machine, error) {
	f, err := p.Choose(w.Disable, w.Enable)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{FreeBytes: p.FreeBytes(), UMA: p.Features.UMA, CPU: p.Type == vk.CPU, Shared: w.Shared, Matrices: kernels.Matrices(p, f), FewRowKernels: kernels.Few(p, f)}
	if _, m.AvailableBytes, err = mem.RAM(); err != nil {
		log.Warn("host memory unknown: nothing is kept there", "error", err)
	}
	if w.Shared == mem.NotShared && w.inPlace(&m) {
		if m.Shared, err = probe(); err != nil {
			return m, err
		}
		log.Debug("memory in common with the host", "weights", m.Shared)
	}
	return m, nil
}
