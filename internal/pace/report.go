package pace

import "time"

// Report is what a pacer knows, and what it does.
type Report struct {
	By           By            // what the pacer goes by
	Sensor       string        // its name; "" without one
	TargetC      float64       // 0 without a sensor
	Reading      Reading       // the newest one; zero without a sensor
	Drift        float64       // how much longer work takes than when the device was cool; 1: no longer
	RestPerLayer time.Duration // rest for each layer of recent steps, on average
	RestShare    float64       // share of the time of recent steps that was rest, 0 to 1
}

// By is what a pacer goes by.
type By int

const (
	Off      By = iota // there is no pacer
	BySensor           // the temperature that a sensor reads
	ByDrift            // how much longer work takes than on a cool device
)

func (b By) String() string {
	switch b {
	case BySensor:
		return "sensor"
	case ByDrift:
		return "drift"
	}
	return "off"
}

// Report reports on a pacer; a nil pacer's report is zero.
func (p *Pacer) Report() Report {
	if p == nil {
		return Report{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Report{By: ByDrift}
	r.Drift, _ = p.drift.Slow()
	if p.o.Sensor != nil {
		r.Sensor = p.o.Sensor.Name()
	}
	if !p.blind() {
		r.By, r.TargetC, r.Reading = BySensor, p.control.Target(), p.last
	}
	if p.recent.seconds > 0 {
		r.RestShare = p.recent.rested / p.recent.seconds
	}
	if n := p.recent.steps * float64(p.o.Layers); n > 0 {
		r.RestPerLayer = time.Duration(p.recent.rested / n * float64(time.Second))
	}
	return r
}
