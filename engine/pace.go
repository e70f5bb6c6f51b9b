package engine

import (
	"time"

	"leat/internal/pace"
)

// Sensor reads the temperature of one device. Its methods are called by one goroutine at a time.
type Sensor interface {
	Name() string           // as "NVML"
	SlowdownC() float64     // temperature at which the device slows itself; 0: not known
	Read() (Reading, error) // may take milliseconds
	Close() error           // by [Model.Close]
}

// Reading is what a sensor knows of a device at a moment.
type Reading struct {
	TempC    float64
	PowerW   float64 // 0: not known
	ClockMHz int     // 0: not known
	Slowed   bool    // the device says that it runs slower because of heat
}

// PaceReport says how hot the device is, and how much it rests for that.
type PaceReport struct {
	By           string        // what is watched: "sensor", "drift" (how long work takes) or "off"
	Sensor       string        // its name; "": there is none
	TargetC      float64       // temperature to keep; 0: without a sensor
	Reading      Reading       // the sensor's last
	Drift        float64       // how much longer work takes than when the device was cool; 1: as long
	RestPerLayer time.Duration // on average, lately
	RestShare    float64       // of the time of the last steps, 0 to 1
}

func paceReportOf(r pace.Report) PaceReport {
	return PaceReport{r.By.String(), r.Sensor, r.TargetC, Reading(r.Reading), r.Drift, r.RestPerLayer, r.RestShare}
}

// sensed is a caller's sensor as the pacer reads it.
type sensed struct{ of Sensor }

func (s sensed) Name() string       { return s.of.Name() }
func (s sensed) SlowdownC() float64 { return s.of.SlowdownC() }
func (s sensed) Close() error       { return s.of.Close() }

func (s sensed) Read() (pace.Reading, error) {
	r, err := s.of.Read()
	return pace.Reading(r), err
}

// newPacer makes the pacer that the options ask for; nil: none, and steps cost no more
// than if pacers did not exist.
func (r *runner) newPacer() *pace.Pacer {
	o, phys := &r.p.o, r.p.device.vk.Physical
	if o.Pace == "off" {
		return nil
	}
	var sensor pace.Sensor
	switch {
	case o.Sensor != nil:
		sensor = sensed{o.Sensor}
	case !r.p.device.onCPU():
		var err error
		if sensor, err = pace.Find(pace.Device{VendorID: phys.VendorID, PCI: phys.PCI, UUID: phys.UUID}); err != nil {
			o.Logger.Warn("the temperature can't be read: only slowness is watched", "error", err)
		}
	}
	if sensor == nil && (r.p.device.onCPU() || r.p.device.vk.Compute.TimestampBits == 0) {
		return nil // a CPU's times say more of the other programs than of its heat
	}
	p := pace.New(pace.Options{
		TargetC: float64(o.TargetTempC), Sensor: sensor, Layers: r.p.hyper.BlockCount, Logger: o.Logger,
	})
	report := p.Report()
	o.Logger.Debug("pace", "by", report.By, "sensor", report.Sensor, "target", report.TargetC, "temp", report.Reading.TempC)
	return p
}
