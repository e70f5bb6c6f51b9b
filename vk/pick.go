package vk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pick chooses a device: by index, by UUID, or by a part of its name in any
// case. Of several that a name fits, and for "", it takes the best: discrete
// before integrated (whose memory is the host's), those before the CPU, then
// most device-local memory.
func (i *Instance) Pick(sel string) (*PhysicalDevice, error) {
	return pick(i.devices, sel)
}

func pick(devices []*PhysicalDevice, sel string) (*PhysicalDevice, error) {
	fits := devices
	if sel != "" {
		fits = nil
		index, err := strconv.Atoi(sel)
		for _, p := range devices {
			switch {
			case err == nil && p.Index == index, p.UUID != "" && strings.EqualFold(p.UUID, sel):
				return p, nil
			case err != nil && strings.Contains(strings.ToLower(p.Name), strings.ToLower(sel)):
				fits = append(fits, p)
			}
		}
	}
	if len(fits) == 0 {
		e := &SelectError{Selection: sel}
		for _, p := range devices {
			e.Devices = append(e.Devices, fmt.Sprintf("%d: %s (%s)", p.Index, p.Name, p.UUID))
		}
		return nil, e
	}
	return slices.MinFunc(fits, func(a, b *PhysicalDevice) int {
		return cmp.Or(
			cmp.Compare(a.order(), b.order()),
			cmp.Compare(b.DeviceLocalBytes(), a.DeviceLocalBytes()),
			cmp.Compare(a.Index, b.Index),
		)
	}), nil
}

// order is the place of the device's kind when we choose.
func (p *PhysicalDevice) order() int {
	switch {
	case !p.modern() || !p.Features.BufferDeviceAddress || !p.Features.TimelineSemaphore:
		return 3 // only to say what it lacks
	case p.Type == Discrete || p.Type == Virtual:
		return 0
	case p.Type == CPU:
		return 2
	}
	return 1
}
