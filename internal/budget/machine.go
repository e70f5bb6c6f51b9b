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

// Machine is what a budget depends on: of this machine as [Request.Examine] finds it, or of another one by [OfGPU].
type Machine struct {
	FreeBytes      int64      // free memory of the device
	AvailableBytes int64      // available RAM; 0: not known
	UMA            bool       // the device's memory is a part of RAM
	CPU            bool       // the device is the CPU itself
	Shared         mem.Shared // the kind of host memory in which the device can read weights in place
	Matrices       bool       // the device has kernels with cooperative matrices, see [plan.Budget]
	FewRowKernels  bool       // the device has kernels made for steps of few rows, see [plan.Budget]
}

// OfGPU is a machine with GPU g and ramBytes of RAM; 0: as much as machines with such a GPU usually have. The desktop, the driver and the system
// take a part of both memories.
func OfGPU(g *gpus.GPU, ramBytes int64) Machine {
	m := Machine{FreeBytes: g.VRAMBytes / 16 * 15, UMA: g.UMA, Matrices: g.Matrices(), FewRowKernels: true}
	if ramBytes == 0 {
		ramBytes = g.RAMBytes()
	}
	m.AvailableBytes = ramBytes / 8 * 7
	if g.UMA { // the device owns a share of the memory, and can read all of it
		share := float64(g.VRAMBytes) / float64(max(1, g.RAMBytes()))
		m.FreeBytes, m.Shared = min(int64(share*float64(ramBytes)), m.AvailableBytes), mem.Imported
	}
	return m
}

// Examine looks at a device of this machine: its free memory and its features. If weights may be read in place it opens the device to find out how.
func (r *Request) Examine(ctx context.Context, inst *vk.Instance, p *vk.PhysicalDevice, log *slog.Logger) (Machine, error) {
	return r.examine(p, log, func() (kind mem.Shared, err error) {
		dev, err := inst.NewDevice(p, vk.DeviceOptions{OneQueue: r.OneQueue, Disable: r.Disable, Enable: r.Enable})
		if err != nil {
			return mem.NotShared, err
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		return mem.ProbeShared(ctx, dev)
	})
}

// ExamineOpen is [Request.Examine] for a device that is open already.
func (r *Request) ExamineOpen(ctx context.Context, dev *vk.Device, log *slog.Logger) (Machine, error) {
	return r.examine(dev.Physical, log, func() (mem.Shared, error) { return mem.ProbeShared(ctx, dev) })
}

// examine fills in a [Machine]. probe finds out the kind of host memory in which the device can read weights in place.
func (r *Request) examine(p *vk.PhysicalDevice, log *slog.Logger, probe func() (mem.Shared, error)) (Machine, error) {
	f, err := p.Choose(r.Disable, r.Enable)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{FreeBytes: p.FreeBytes(), UMA: p.Features.UMA, CPU: p.Type == vk.CPU, Shared: r.Shared, Matrices: kernels.PromptsUseMatrices(p, f), FewRowKernels: kernels.HasFewRowKernels(p, f)}
	if _, m.AvailableBytes, err = mem.RAM(); err != nil {
		log.Warn("host memory unknown: nothing is kept there", "error", err)
	}
	if r.Shared == mem.NotShared && r.inPlace(&m) {
		if m.Shared, err = probe(); err != nil {
			return m, err
		}
		log.Debug("memory in common with the host", "weights", m.Shared)
	}
	return m, nil
}
