package vk_test

import (
	"errors"
	"strings"
	"testing"

	"leat/vk"
	"leat/vk/vktest"
)

func TestOpen(t *testing.T) {
	d := vktest.Open(t)
	p := d.Physical
	if p.Name == "" || p.UUID == "" || p.DriverName == "" || p.APIVersion < vk.MakeVersion(1, 2, 0) {
		t.Errorf("%q, UUID %q, driver %q, Vulkan %v: something is missing", p.Name, p.UUID, p.DriverName, p.APIVersion)
	}
	if !d.Features.BufferDeviceAddress || !d.Features.TimelineSemaphore {
		t.Errorf("features %+v: the required ones are off", d.Features)
	}
	if p.Limits.MaxPushConstants < 128 || p.Limits.Subgroup < 1 || p.Limits.MaxWorkgroups[0] < 65535 {
		t.Errorf("limits %+v: below what Vulkan promises", p.Limits)
	}
	if p.FreeBytes() <= 0 || p.DeviceLocalBytes() < p.FreeBytes() {
		t.Errorf("%d of %d bytes are free", p.FreeBytes(), p.DeviceLocalBytes())
	}
	t.Logf("%s (%v), %s %s, Vulkan %v\n%+v\n%+v\nheaps %+v\ntypes %v\nfamilies %+v", p.Name, p.Type, p.DriverName, p.DriverInfo, p.APIVersion, d.Features, p.Limits, p.Heaps, p.MemoryTypes, p.QueueFamilies)
	if err := d.WaitIdle(); err != nil {
		t.Error(err)
	}
	_ = errors.Is
	_ = strings.Contains
}
