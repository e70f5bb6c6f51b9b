package pace

import (
	"errors"
	"runtime"

	"leat/internal/pace/nvml"
)

// Device is what a sensor is found by.
type Device struct {
	VendorID uint32
	PCI      string // address, as "0000:65:00.0"; "": not known
	UUID     string
}

const vendorNVIDIA = 0x10de

// Find opens the sensor of a device. Where there is none, the sensor is nil; an error says
// why there is none where there should be one.
func Find(d Device) (Sensor, error) {
	if d.VendorID == vendorNVIDIA {
		s, err := findNVML(d)
		if s != nil || err != nil && !errors.Is(err, nvml.ErrNone) {
			return s, err
		}
	}
	if runtime.GOOS == "linux" && d.PCI != "" {
		if h := newHwmon(sysfs(), d.PCI); h != nil {
			return h, nil
		}
	}
	return nil, nil
}

func findNVML(d Device) (Sensor, error) {
	lib, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	dev, err := lib.Device(d.PCI, d.UUID)
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	s := nvmlSensor{dev}
	if _, err := s.Read(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// nvmlSensor is an NVIDIA GPU's.
type nvmlSensor struct{ *nvml.Device }

func (nvmlSensor) Name() string { return "NVML" }

func (s nvmlSensor) Read() (Reading, error) {
	temp, err := s.TempC()
	if err != nil {
		return Reading{}, err
	}
	return Reading{TempC: temp, PowerW: s.PowerW(), ClockMHz: s.ClockMHz(), Slowed: s.SlowedByHeat()}, nil
}
