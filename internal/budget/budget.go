package budget

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/vk/mem"
)

// Request is the memory and the properties that a user asks of a run: valid, with defaults filled in. Sizes are in bytes; a size of 0 leaves the choice to
// the plan or to this package.
type Request struct {
	DeviceBytes   int64      // VRAM for weights, KV cache and scratch
	HostBytes     int64      // pinned RAM for staging and weights
	ContextLength int        // tokens that a session can hold
	Sessions      int        // number of sessions
	Chunk         int        // most rows of a step
	KVType        gguf.Type  // type of the KV cache
	RingBytes     int64      // VRAM of the ring that streamed units pass through
	Sweep         plan.Sweep // choices of the plan to override

	OneQueue bool     // uploads and kernels share one queue, as in engine.Tuning
	Discrete bool     // upload weights even if the device shares its memory with the host, as in engine.Tuning
	Disable  []string // features of the device not to use
	Enable   []string // features of the device to use where they are off by default

	Shared mem.Shared // read weights in place in this kind of memory, whatever the budgets are; NotShared: decide by the machine
}

// Budget is the budget that a model gets on a machine. h is nil if the engine can't run the model.
func (r *Request) Budget(on *Machine, h *arch.Hyper, m *pack.Model) plan.Budget {
	b := plan.Budget{
		ContextLength: r.ContextLength, Chunk: r.Chunk, KVType: r.KVType, Sessions: r.Sessions, RingBytes: r.RingBytes, Sweep: r.Sweep,
		Matrices: on.Matrices, FewRowKernels: on.FewRowKernels,
	}
	b.InPlace = r.inPlace(on) && on.Shared != mem.NotShared && h != nil && plan.Aligned(h, m)
	b.DeviceBytes, b.HostBytes = r.memory(on, b.InPlace)
	return b
}

// reservedVRAM is the part of free VRAM that is left to other programs: a 20th, at least 256 MiB.
func reservedVRAM(free int64) int64 { return max(free/20, 256<<20) }

// spareRAM is the part of available RAM that leat may take. It leaves an eighth, at least 1 GiB, at most half.
func spareRAM(available int64) int64 { return available - min(available/2, max(available/8, 1<<30)) }

// inPlace reports whether the device should read weights in host memory, if it can. A CPU device that is
// given a VRAM budget does not: it emulates another device.
func (r *Request) inPlace(on *Machine) bool {
	if r.Shared != mem.NotShared {
		return true
	}
	return on.UMA && !r.Discrete && (!on.CPU || r.DeviceBytes == 0)
}

// memory is the VRAM and the RAM that a plan may take. Where both are the same memory, it is counted once: a size that was not asked for is
// what the other leaves. In place, both are one budget for weights, and KV cache and scratch must fit the first.
func (r *Request) memory(on *Machine, inPlace bool) (device, host int64) {
	device, host = r.DeviceBytes, r.HostBytes
	one := on.UMA && on.AvailableBytes > 0
	if device == 0 {
		device = on.FreeBytes
		if one { // the heap is the same RAM that others use
			device = min(device, on.AvailableBytes/4*3)
		}
		device -= min(device/2, reservedVRAM(device))
		if one { // a given RAM budget comes first, but leaves the device half
			device = min(device, max(device/2, spareRAM(on.AvailableBytes)-host))
		}
	}
	left := max(0, spareRAM(on.AvailableBytes)-device)
	switch {
	case host > 0:
		if one && r.DeviceBytes == 0 {
			host = min(host, left)
		}
	case !on.UMA:
		host = spareRAM(on.AvailableBytes)
	case inPlace && (r.DeviceBytes > 0 || on.Shared == mem.Mapped): // a given VRAM budget holds everything; mapped memory is the device's own
		host = 0
	case inPlace:
		host = left
	default:
		host = min(on.AvailableBytes/8, left)
	}
	return device, host
}
