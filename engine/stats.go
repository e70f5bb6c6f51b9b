package engine

import (
	"leat/engine/pace"
	"leat/vk"
)

// Stats is how a model is doing just now.
type Stats struct {
	Pace    pace.Report // temperature, power, rests
	Shrinks []Shrink    // times that VRAM was given back to other programs, oldest first; [Model.Plan] has the budget now
}

// Stats may be called by any goroutine, also while a step runs.
func (m *Model) Stats() Stats { return Stats{Pace: m.pacer.Report(), Shrinks: m.shrinks.all()} }

// newPacer makes the pacer that the options ask for; nil: none, and steps cost no more
// than if there were no such thing.
func (m *Model) newPacer() *pace.Pacer {
	if m.o.Pace == "off" {
		return nil
	}
	phys, sensor := m.dev.Physical, m.o.Sensor
	if sensor == nil && phys.Type != vk.CPU {
		var err error
		if sensor, err = pace.Find(pace.Device{VendorID: phys.VendorID, PCI: phys.PCI, UUID: phys.UUID}); err != nil {
			m.o.Logger.Warn("the temperature can't be read: only slowness is watched", "error", err)
		}
	}
	if sensor == nil && (phys.Type == vk.CPU || m.dev.Compute.TimestampBits == 0) {
		return nil // a CPU's times say more of the other programs than of its heat
	}
	p := pace.New(pace.Options{
		TargetC: float64(m.o.TargetTempC), Sensor: sensor, Layers: m.hyper.BlockCount, Logger: m.o.Logger,
	})
	r := p.Report()
	m.o.Logger.Debug("pace", "by", r.By, "sensor", r.Sensor, "target", r.TargetC, "temp", r.Reading.TempC)
	return p
}
