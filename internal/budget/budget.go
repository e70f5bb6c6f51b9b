package budget

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/vk/mem"
)

// Wishes is what was asked for, valid and with defaults filled in. Sizes are in bytes; 0: chosen.
type Wishes struct {
	DeviceBytes, HostBytes  int64 // of VRAM and of RAM
	ContextLength, Sessions int
	Chunk                   int
	KVType                  gguf.Type
	RingBytes               int64
	Sweep                   plan.Sweep

	OneQueue, Discrete bool     // as in engine.Tuning
	Disable, Enable    []string // features of the device

	Shared mem.Shared // keep weights in place in such memory, whatever the budgets; NotShared: as the machine has it
}

// Budget is what w allows a model on a machine. A nil h is a model that the engine does not run.
func (w *Wishes) Budget(on *Machine, h *arch.Hyper, m *pack.Model) plan.Budget {
	b := plan.Budget{
		ContextLength: w.ContextLength, Chunk: w.Chunk, KVType: w.KVType, Sessions: w.Sessions, RingBytes: w.RingBytes, Sweep: w.Sweep,
		Matrices: on.Matrices, FewRowKernels: on.FewRowKernels,
	}
	b.InPlace = w.inPlace(on) && on.Shared != mem.NotShared && h != nil && plan.Aligned(h, m)
	b.DeviceBytes, b.HostBytes = w.memory(on, b.InPlace)
	return b
}

// reserve is the VRAM that is left free beside our budget: a part, and never less than a little.
func reserve(free int64) int64 { return max(free/20, 256<<20) }

// spare is what we may take of the RAM that is available.
func spare(available int64) int64 { return available - min(available/2, max(available/8, 1<<30)) }

// inPlace reports whether the device is to read weights where the host has them, if it can. A CPU that is
// given a VRAM budget stands for another device, which is to be tried out.
func (w *Wishes) inPlace(on *Machine) bool {
	if w.Shared != mem.NotShared {
		return true
	}
	return on.UMA && !w.Discrete && (!on.CPU || w.DeviceBytes == 0)
}

// memory is the VRAM and the RAM that w allows. Where they are one memory it is counted once: what was not asked for is what the other leaves of
// it. In place they are one budget, of which what must be the device's own stays within the first.
func (w *Wishes) memory(on *Machine, inPlace bool) (device, host int64) {
	device, host = w.DeviceBytes, w.HostBytes
	one := on.UMA && on.AvailableBytes > 0
	if device == 0 {
		device = on.FreeBytes
		if one { // the heap is the same RAM that others use
			device = min(device, on.AvailableBytes/4*3)
		}
		device -= min(device/2, reserve(device))
		if one { // RAM that was asked for comes first, but not before all of this
			device = min(device, max(device/2, spare(on.AvailableBytes)-host))
		}
	}
	left := max(0, spare(on.AvailableBytes)-device)
	switch {
	case host > 0:
		if one && w.DeviceBytes == 0 {
			host = min(host, left)
		}
	case !on.UMA:
		host = spare(on.AvailableBytes)
	case inPlace && (w.DeviceBytes > 0 || on.Shared == mem.Mapped): // what was asked for is the whole of it; mapped memory is the device's own
		host = 0
	case inPlace:
		host = left
	default:
		host = min(on.AvailableBytes/8, left)
	}
	return device, host
}
