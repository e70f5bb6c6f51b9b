package vk

import (
	"cmp"
	"slices"
	"strings"

	"leat/vk/internal/raw"
)

// The CPU can always write a window of 256 MiB; more than that is "resizable BAR".
const classicBAR = 256 << 20

func (p *PhysicalDevice) queryMemory() {
	var m raw.PhysicalDeviceMemoryProperties
	p.instance.fn.GetPhysicalDeviceMemoryProperties(p.handle, &m)
	const known = raw.MemoryPropertyDeviceLocalBit | raw.MemoryPropertyHostVisibleBit | raw.MemoryPropertyHostCoherentBit | raw.MemoryPropertyHostCachedBit
	for _, t := range m.MemoryTypes[:m.MemoryTypeCount] {
		has := func(bit raw.MemoryPropertyFlags) bool { return t.PropertyFlags&bit != 0 }
		p.MemoryTypes = append(p.MemoryTypes, MemoryType{
			Heap:         int(t.HeapIndex),
			DeviceLocal:  has(raw.MemoryPropertyDeviceLocalBit),
			HostVisible:  has(raw.MemoryPropertyHostVisibleBit),
			HostCoherent: has(raw.MemoryPropertyHostCoherentBit),
			HostCached:   has(raw.MemoryPropertyHostCachedBit),
			special:      has(^raw.MemoryPropertyFlags(known)),
		})
	}
	p.Features.MemoryBudget = p.modern() && p.has(extMemoryBudget)
	p.Heaps = p.HeapsNow()
	p.Features.UMA = p.Type == Integrated || p.Type == CPU || !slices.ContainsFunc(p.Heaps, func(h Heap) bool { return !h.DeviceLocal })
	for _, t := range p.MemoryTypes {
		if p.Type == Discrete && t.DeviceLocal && t.HostVisible && p.Heaps[t.Heap].Bytes > classicBAR {
			p.Features.ReBAR = true
		}
	}
}

// HeapsNow asks for the heaps with their budgets and use at this moment.
func (p *PhysicalDevice) HeapsNow() []Heap {
	budget := &raw.PhysicalDeviceMemoryBudgetPropertiesEXT{SType: raw.StructureTypePhysicalDeviceMemoryBudgetPropertiesEXT}
	m := &raw.PhysicalDeviceMemoryProperties2{SType: raw.StructureTypePhysicalDeviceMemoryProperties2}
	if p.Features.MemoryBudget {
		m.PNext = raw.Ptr(budget)
		p.instance.fn.GetPhysicalDeviceMemoryProperties2(p.handle, m)
	} else {
		p.instance.fn.GetPhysicalDeviceMemoryProperties(p.handle, &m.MemoryProperties)
	}
	var heaps []Heap
	for n, h := range m.MemoryProperties.MemoryHeaps[:m.MemoryProperties.MemoryHeapCount] {
		heap := Heap{Bytes: int64(h.Size), BudgetBytes: int64(h.Size) / 10 * 9, DeviceLocal: h.Flags&raw.MemoryHeapDeviceLocalBit != 0}
		if p.Features.MemoryBudget {
			heap.BudgetBytes, heap.UsedBytes = int64(budget.HeapBudget[n]), int64(budget.HeapUsage[n])
		}
		heaps = append(heaps, heap)
	}
	return heaps
}

// FreeBytes is what this process may still allocate of device-local memory,
// asked anew.
func (p *PhysicalDevice) FreeBytes() int64 {
	var free int64
	for _, h := range p.HeapsNow() {
		if h.DeviceLocal {
			free += max(0, h.BudgetBytes-h.UsedBytes)
		}
	}
	return free
}

// Headroom is what FreeBytes is, but below zero where this process uses more of a
// device-local memory than the driver would now have it use.
func (p *PhysicalDevice) Headroom() int64 {
	var free, over int64
	for _, h := range p.HeapsNow() {
		if h.DeviceLocal {
			free += max(0, h.BudgetBytes-h.UsedBytes)
			over += max(0, h.UsedBytes-h.BudgetBytes)
		}
	}
	if over > 0 {
		return -over
	}
	return free
}

// DeviceLocalBytes is the size of all device-local heaps.
func (p *PhysicalDevice) DeviceLocalBytes() int64 {
	var n int64
	for _, h := range p.Heaps {
		if h.DeviceLocal {
			n += h.Bytes
		}
	}
	return n
}

func (t MemoryType) String() string {
	var s []string
	for _, f := range []struct {
		on   bool
		name string
	}{{t.DeviceLocal, "device local"}, {t.HostVisible, "host visible"}, {t.HostCoherent, "host coherent"}, {t.HostCached, "host cached"}} {
		if f.on {
			s = append(s, f.name)
		}
	}
	return strings.Join(s, ", ")
}

// MemoryClass is what a buffer is for.
type MemoryClass int

const (
	DeviceLocal MemoryClass = iota // fastest for the device; not mapped
	Upload                         // mapped, coherent; the CPU writes, the device reads
	Readback                       // mapped, coherent, cached where there is such; the CPU reads
	Mapped                         // device-local, mapped, coherent: UMA, or a discrete device's window; the CPU writes
)

func (c MemoryClass) String() string {
	switch c {
	case DeviceLocal:
		return "device-local"
	case Upload:
		return "upload"
	case Readback:
		return "readback"
	case Mapped:
		return "mapped device-local"
	}
	return "unknown"
}

// rank lists the memory types of bits that suit class c, best first. The types
// after the first are for when its heap is full.
func (p *PhysicalDevice) rank(bits uint32, c MemoryClass) []int {
	var list []int
	for n, t := range p.MemoryTypes {
		suits := t.DeviceLocal
		switch c {
		case Mapped:
			suits = t.DeviceLocal && t.HostVisible && t.HostCoherent
		case Upload, Readback:
			// Staging in a discrete device's own memory would eat its budget unseen.
			suits = t.HostVisible && t.HostCoherent && (!t.DeviceLocal || p.Features.UMA)
		}
		if bits>>n&1 != 0 && suits && !t.special {
			list = append(list, n)
		}
	}
	cost := func(n int) int {
		t := p.MemoryTypes[n]
		switch {
		case c == Readback && !t.HostCached:
			return 2
		case (c == Upload || c == Mapped) && t.HostCached, (c == Upload || c == Readback) && t.DeviceLocal:
			return 1 // the device would snoop the CPU's caches
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b int) int {
		ta, tb := p.MemoryTypes[a], p.MemoryTypes[b]
		return cmp.Or(
			cmp.Compare(cost(a), cost(b)),
			cmp.Compare(p.Heaps[tb.Heap].Bytes, p.Heaps[ta.Heap].Bytes),
			cmp.Compare(b2i(ta.HostVisible), b2i(tb.HostVisible)), // plain memory before the CPU's window into it
		)
	})
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
