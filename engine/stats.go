package engine

import (
	"time"

	"leat/internal/pace"
	"leat/internal/weights"
	"leat/vk"
)

// Stats is how a model is doing just now, and what it has done since [Load].
type Stats struct {
	Pace    pace.Report // temperature, power, rests
	Shrinks []Shrink    // times that VRAM was given back to other programs, oldest first; [Model.Plan] has the budget now

	Steps       int64 // forward passes
	Rows        int64 // tokens that went through them
	Submissions int64 // of work to the device, uploads not counted

	UploadedBytes int64 // weights, over the link
	DiskBytes     int64 // weights, read from disk; token embeddings, of which a step takes some rows, aside
	WeightBytes   int64 // weights that kernels read in VRAM, each unit once a step

	// How long each was busy: the disk while a read was outstanding, the link while a
	// copy was under way, the device while a submission ran. Link is what the host saw, waits
	// included; with [Options.Trace] it is by the device's clock, which costs some
	// percent of the link. Compute is an estimate where the device has no timestamps.
	Disk, Link, Compute time.Duration

	Stalled time.Duration // the device stood idle within steps because weights had not come
	Record  time.Duration // the host recorded and submitted

	Experts ExpertStats // of experts that share slots of VRAM, where not all fit

	VRAMBytes, VRAMPeak, HostBytes int64 // in use, the most that was, pinned RAM
}

// ExpertStats is what slots of experts were asked for. A step asks once for each expert that a layer needs.
type ExpertStats = weights.ExpertStats

// Stats may be called by any goroutine, also while a step runs. It does not wait for that,
// so what the device does just now is not in it yet. Of a closed model they are what they were in the end.
func (m *Model) Stats() Stats {
	m.open.RLock()
	defer m.open.RUnlock()
	if m.closed {
		return m.left
	}
	return m.stats()
}

func (m *Model) stats() Stats {
	c := m.stepper.Counters()
	s := Stats{
		Pace: m.pacer.Report(), Shrinks: m.shrinks.all(), Steps: c.Steps, Rows: c.Rows, Submissions: c.Submissions, WeightBytes: c.WeightBytes,
		Compute: c.Compute, Stalled: c.Stalled, Record: c.Record,
		VRAMBytes: m.vram.Used(), VRAMPeak: m.vram.Peak(), HostBytes: m.host.Used(),
	}
	s.UploadedBytes, s.DiskBytes = m.weights.Traffic()
	s.Experts = m.weights.Experts().Stats()
	s.Disk, s.Link = m.weights.Busy()
	return s
}

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
