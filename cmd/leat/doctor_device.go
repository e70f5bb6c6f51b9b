package main

import (
	"errors"

	"leat/vk"
)

// testedDevice is the device that an examination tests, among those that Vulkan shows.
type testedDevice struct {
	found    *findings
	instance *vk.Instance
	chosen   *vk.PhysicalDevice // nil: there is none to test
	reports  []deviceReport     // of all devices
}

// find lists the devices and chooses one by name, as "leat devices" prints it, or the best.
func (t *testedDevice) find(o vk.InstanceOptions, name string) {
	var err error
	if t.instance, err = vk.Open(o); err != nil {
		t.found.fail(err)
		return
	}
	best, bestErr := t.instance.Pick("")
	if t.chosen, err = t.instance.Pick(name); err != nil {
		t.found.fail(err)
	}
	for _, p := range t.instance.PhysicalDevices() {
		r := describe(p)
		r.Default = bestErr == nil && p == best
		t.reports = append(t.reports, r)
		r.print(t.found.out, true)
	}
}

// open opens the chosen device; nil, with the problem noted, where it fails.
func (t *testedDevice) open(o vk.DeviceOptions) *vk.Device {
	dev, err := t.instance.NewDevice(t.chosen, o)
	if err != nil {
		t.found.fail(err)
		return nil
	}
	return dev
}

func (t *testedDevice) close(dev *vk.Device) {
	if err := dev.Close(); err != nil && !errors.Is(err, vk.ErrDeviceLost) {
		t.found.warn(err.Error(), "")
	}
}

func (t *testedDevice) closeInstance() {
	if t.instance == nil {
		return
	}
	if err := t.instance.Close(); err != nil {
		t.found.warn(err.Error(), "")
	}
}

// lost reports whether the device was lost in a test: then it is not asked again.
func (t *testedDevice) lost() bool { return errors.Is(t.found.failure, vk.ErrDeviceLost) }
