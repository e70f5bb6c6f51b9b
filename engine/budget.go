package engine

import (
	"context"
	"errors"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/predict/gpus"
	"leat/vk"
	"leat/vk/mem"
)

// Machine is what of a machine a model's budgets depend on: of this one, as [Options.Examine] finds it, or of another one, by [MachineOf].
type Machine struct {
	FreeBytes      int64      // of the device's memory
	AvailableBytes int64      // of RAM; 0: not known
	UMA            bool       // the one is a part of the other
	CPU            bool       // the device is the CPU itself
	Shared         mem.Shared // the memory in which the device reads weights where the host has them, if it does
	Matrices, Few  bool       // kernels that it has, see [plan.Budget]
}

// Examine looks at a device of this machine, as it is now. Where weights may be read in place it opens the device to try how.
func (o Options) Examine(ctx context.Context, inst *vk.Instance, p *vk.PhysicalDevice) (Machine, error) {
	o, err := o.validated()
	if err != nil {
		return Machine{}, err
	}
	return o.examine(p, func() (kind mem.Shared, err error) {
		dev, err := inst.NewDevice(p, vk.DeviceOptions{OneQueue: o.OneQueue, Disable: o.Disable, Enable: o.Enable})
		if err != nil {
			return mem.NotShared, err
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		return mem.ProbeShared(ctx, dev)
	})
}

// examine is Examine where somebody has the device open.
func (o *Options) examine(p *vk.PhysicalDevice, probe func() (mem.Shared, error)) (Machine, error) {
	if o.machine != nil {
		return *o.machine, nil
	}
	f, err := p.Choose(o.Disable, o.Enable)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{FreeBytes: p.FreeBytes(), UMA: p.Features.UMA, CPU: p.Type == vk.CPU, Shared: o.shared, Matrices: kernels.Matrices(p, f), Few: kernels.Few(p, f)}
	if _, m.AvailableBytes, err = mem.RAM(); err != nil {
		o.Logger.Warn("host memory unknown: nothing is kept there", "error", err)
	}
	if o.shared == mem.NotShared && o.wantsInPlace(&m) {
		if m.Shared, err = probe(); err != nil {
			return m, err
		}
		o.Logger.Debug("memory in common with the host", "weights", m.Shared)
	}
	return m, nil
}

// MachineOf is a machine with that GPU, and so much RAM; 0: as it is common around it. A desktop, the driver and the system take some.
func MachineOf(g *gpus.GPU, ramBytes int64) Machine {
	m := Machine{FreeBytes: g.VRAMBytes / 16 * 15, UMA: g.UMA, Matrices: g.Matrices(), Few: true}
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

// Budget is what o allows a model on a machine. It is the one place that decides this: [Load] plans by it, and so must all who say how
// a model will run. A nil h is a model that the engine does not run.
func (o Options) Budget(on *Machine, h *arch.Hyper, m *pack.Model) (plan.Budget, error) {
	o, err := o.validated()
	if err != nil {
		return plan.Budget{}, err
	}
	b := plan.Budget{
		ContextLength: o.ContextLength, Chunk: o.Chunk, KVType: o.kv(), Sessions: o.Sessions, RingBytes: o.RingBytes, Sweep: o.Sweep,
		Matrices: on.Matrices, Few: on.Few,
	}
	b.InPlace = o.wantsInPlace(on) && on.Shared != mem.NotShared && h != nil && plan.Aligned(h, m)
	b.DeviceBytes, b.HostBytes = o.memory(on, b.InPlace)
	return b, nil
}

// defaultReserve is left free beside our budget: a part, and never less than a little.
func defaultReserve(free int64) int64 { return max(free/20, 256<<20) }

// spare is what we may take of the RAM that is available.
func spare(available int64) int64 { return available - min(available/2, max(available/8, 1<<30)) }

// wantsInPlace reports whether the device is to read weights where the host has them, if it can. A CPU that is
// given a VRAM budget stands for another device, which is to be tried out.
func (o *Options) wantsInPlace(on *Machine) bool {
	if o.shared != mem.NotShared {
		return true
	}
	return on.UMA && !o.Discrete && (!on.CPU || o.DeviceBytes == 0)
}

// memory is the VRAM and the RAM that o allows. Where they are one memory it is counted once: what was not asked for is what the other leaves of
// it. In place they are one budget, of which what must be the device's own stays within the first.
func (o *Options) memory(on *Machine, inPlace bool) (device, host int64) {
	device, host = o.DeviceBytes, o.HostBytes
	one := on.UMA && on.AvailableBytes > 0
	if device == 0 {
		device = on.FreeBytes
		if one { // the heap is the same RAM that others use
			device = min(device, on.AvailableBytes/4*3)
		}
		device -= min(device/2, defaultReserve(device))
		if one { // RAM that was asked for comes first, but not before all of this
			device = min(device, max(device/2, spare(on.AvailableBytes)-host))
		}
	}
	left := max(0, spare(on.AvailableBytes)-device)
	switch {
	case host > 0:
		if one && o.DeviceBytes == 0 {
			host = min(host, left)
		}
	case !on.UMA:
		host = spare(on.AvailableBytes)
	case inPlace && (o.DeviceBytes > 0 || on.Shared == mem.Mapped): // what was asked for is the whole of it; mapped memory is the device's own
		host = 0
	case inPlace:
		host = left
	default:
		host = min(on.AvailableBytes/8, left)
	}
	return device, host
}
