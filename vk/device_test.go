package vk_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
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
	if p.Limits.MaxPushConstants < 128 || p.Limits.Subgroup < 1 || p.Limits.MaxWorkgroups[0] < 65535 || p.Limits.MaxAllocationBytes < 1<<30 {
		t.Errorf("limits %+v: below what Vulkan promises", p.Limits)
	}
	if p.FreeBytes() <= 0 || p.DeviceLocalBytes() < p.FreeBytes() {
		t.Errorf("%d of %d bytes are free", p.FreeBytes(), p.DeviceLocalBytes())
	}
	if two := d.Compute.Family != d.Transfer.Family; two != (d.Compute != d.Transfer) {
		t.Errorf("compute %+v, transfer %+v", d.Compute.Family, d.Transfer.Family)
	}
	t.Logf("%s (%v), %s %s, Vulkan %v", p.Name, p.Type, p.DriverName, p.DriverInfo, p.APIVersion)
	t.Logf("%+v\n%+v", d.Features, p.Limits)
	t.Logf("heaps %+v, types %v", p.Heaps, p.MemoryTypes)
	t.Logf("families %+v, compute %d, transfer %d", p.QueueFamilies, d.Compute.Family, d.Transfer.Family)
	if err := d.WaitIdle(); err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	d := vktest.Open(t, vktest.OneQueue(), vktest.Disable(vk.Disabled()...))
	if d.Transfer != d.Compute {
		t.Error("OneQueue gave two")
	}
	if f := d.Features; f.Float16 || f.Int8 || f.SubgroupSizeControl || f.CooperativeMatrix {
		t.Errorf("features %+v: want the disabled off", f)
	}
	if _, err := vktest.Instance(t).NewDevice(d.Physical, vk.DeviceOptions{Disable: []string{"fp17"}}); err == nil {
		t.Error("a feature of an unknown name was disabled")
	}
}

func TestSelect(t *testing.T) {
	i := vktest.Instance(t)
	for _, p := range i.PhysicalDevices() {
		for _, sel := range []string{fmt.Sprint(p.Index), p.UUID} {
			if got, err := i.Pick(sel); err != nil || got != p {
				t.Errorf("pick %q: %v, %v, want %s", sel, got, err, p.Name)
			}
		}
	}
	_, err := i.Pick("voodoo")
	var e *vk.SelectError
	if !errors.As(err, &e) || len(e.Devices) != len(i.PhysicalDevices()) {
		t.Errorf("error %v, want a list of the devices", err)
	}
}

func TestTwoDevices(t *testing.T) {
	a, b := vktest.Open(t), vktest.Open(t)
	for _, d := range []*vk.Device{a, b} {
		buf, err := d.NewBuffer("mine", 1024, vk.Upload)
		if err != nil {
			t.Fatal(err)
		}
		buf.Close()
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := b.WaitIdle(); err != nil {
		t.Errorf("after the other was closed: %v", err)
	}
}

// What is left open is closed and named; closing twice, or too late, is no harm.
func TestCloseOrder(t *testing.T) {
	i := vktest.Instance(t)
	p, err := i.Pick("")
	if err != nil {
		t.Fatal(err)
	}
	d, err := i.NewDevice(p, vk.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer("forgotten", 64, vk.Upload)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := d.NewTimeline("closed")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	closed.Close()
	err = d.Close()
	if err == nil || !strings.Contains(err.Error(), `buffer "forgotten"`) || strings.Contains(err.Error(), "closed timeline") {
		t.Errorf("close says %v, want the forgotten buffer alone", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	b.Close()

	other, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = other.NewDevice(other.PhysicalDevices()[0], vk.DeviceOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err == nil || !strings.Contains(err.Error(), "left open") {
		t.Errorf("close says %v, want the device", err)
	}
	if err := errors.Join(d.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}

// A mistake is counted and told in words, with the names we gave.
func TestValidation(t *testing.T) {
	var log strings.Builder
	i, err := vk.Open(vk.InstanceOptions{Validate: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if errors.Is(err, vk.ErrLayerNotPresent) || errors.Is(err, vk.ErrNoDriver) {
		if os.Getenv("LEAT_VALIDATE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	p, err := i.Pick("")
	if err != nil {
		t.Fatal(err)
	}
	d, err := i.NewDevice(p, vk.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tl, err := d.NewTimeline("the wrong way")
	if err != nil {
		t.Fatal(err)
	}
	defer tl.Close()
	if err := tl.Signal(5); err != nil {
		t.Fatal(err)
	}
	if n := i.Messages(); n != 0 {
		t.Fatalf("%d messages before the mistake:\n%s", n, log.String())
	}
	_ = tl.Signal(3) // backwards; the driver may take it
	if i.Messages() == 0 {
		t.Error("the mistake was not counted")
	}
	for _, want := range []string{"the wrong way", "VUID-VkSemaphoreSignalInfo-value", "level=ERROR"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
