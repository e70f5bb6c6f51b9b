package mem_test

import (
	"context"
	"testing"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// TestProbeShared: a device that has its memory in common with the host can read it in
// place in one way at least; one that has not is never asked to.
func TestProbeShared(t *testing.T) {
	dev := vktest.Open(t)
	kind, err := mem.ProbeShared(t.Context(), dev)
	if err != nil || (kind == mem.NotShared) == (dev.Features.UMA && dev.Features.HostImport) {
		t.Errorf("%v, %v; UMA %t, import %t", kind, err, dev.Features.UMA, dev.Features.HostImport)
	}
	uma, imports := dev.Features.UMA, dev.Features.HostImport
	dev.Features.HostImport = false
	if kind, err := mem.ProbeShared(t.Context(), dev); err != nil || kind == mem.Imported {
		t.Errorf("without import: %v, %v", kind, err)
	}
	dev.Features.UMA, dev.Features.HostImport = false, imports
	if kind, err := mem.ProbeShared(t.Context(), dev); err != nil || kind != mem.NotShared {
		t.Errorf("a discrete device: %v, %v", kind, err)
	}
	dev.Features.UMA = uma
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if kind, err := mem.ProbeShared(ctx, dev); uma && (err == nil || kind != mem.NotShared) {
		t.Errorf("canceled: %v, %v", kind, err)
	}
}

// Both kinds are counted, and mapped memory is the device's own.
func TestAllocShared(t *testing.T) {
	dev := vktest.Open(t)
	h := mem.NewHeap(dev, "VRAM", 0)
	defer h.Close()
	for _, kind := range []mem.Shared{mem.Imported, mem.Mapped} {
		if kind == mem.Mapped && !dev.Features.UMA && !dev.Features.ReBAR {
			continue
		}
		b, err := h.AllocShared("block", 1<<20, kind)
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		if len(b.Mapped()) < 1<<20 || b.Address == 0 || h.Used() != b.AllocBytes {
			t.Errorf("%v: %d bytes mapped at %#x, %d counted of %d", kind, len(b.Mapped()), b.Address, h.Used(), b.AllocBytes)
		}
		if kind == mem.Mapped && (b.Class != vk.Mapped || !dev.Physical.MemoryTypes[b.MemoryType].DeviceLocal) {
			t.Errorf("class %v, memory type %v", b.Class, dev.Physical.MemoryTypes[b.MemoryType])
		}
		h.Free(b)
	}
	if _, err := h.AllocShared("block", 1<<20, mem.NotShared); err == nil || h.Used() != 0 {
		t.Errorf("memory that is not shared: %v, %d bytes used", err, h.Used())
	}
}
