package pace

import (
	"math"
	"math/rand/v2"
	"time"
)

// plant is a device as physics has it: a heat capacity that leaks through a resistance,
// a sensor that rounds, samples and lags, and a throttle.
type plant struct {
	R, C         float64 // K/W, J/K
	Ambient      float64 // °C
	IdleW, FullW float64
	Layer        float64 // seconds a layer takes, unthrottled
	Gap          float64 // seconds of idleness after each layer that transfers cause
	SensorEvery  float64 // seconds between the sensor's own samples
	SensorLag    float64 // seconds
	Floor        bool    // the sensor rounds down
	ThrottleC    float64 // above this the clock drops, until 5 °C below
	Jitter       float64 // of layer times, relative
	Oversleep    float64 // seconds by which a timer is late

	DieK, DieTau float64 // °C by which the die is hotter than its cooler at full power, and its own seconds; 0: none

	temp      float64 // of what the sensor sees
	sink      float64 // of the cooler
	now       float64
	throttled bool
	samples   []sample
	rng       *rand.Rand
}

type sample struct{ at, value float64 }

const (
	slowdown      = 1.7  // of layers under the throttle
	throttledDuty = 0.45 // its power, as a share of full duty's
)

// settle is where a duty ends.
func (p *plant) settle(duty float64) float64 {
	w := p.IdleW + (p.FullW-p.IdleW)*duty
	return p.Ambient + (p.R+p.DieK/p.FullW)*w
}

// balance is the duty that holds a temperature for ever.
func (p *plant) balance(tempC float64) float64 {
	return (tempC - p.settle(0)) / (p.settle(1) - p.settle(0))
}

func (p *plant) advance(seconds float64, busy bool) {
	w := p.IdleW
	if busy {
		w = p.FullW
		if p.throttled {
			w = p.IdleW + (p.FullW-p.IdleW)*throttledDuty
		}
	}
	end := p.Ambient + p.R*w
	die := p.temp - p.sink
	p.sink = end + (p.sink-end)*math.Exp(-seconds/(p.R*p.C))
	if p.DieTau > 0 {
		hot := p.DieK * w / p.FullW
		die = hot + (die-hot)*math.Exp(-seconds/p.DieTau)
	}
	p.temp = p.sink + die
	p.now += seconds
	if p.temp > p.ThrottleC {
		p.throttled = true
	} else if p.temp < p.ThrottleC-5 {
		p.throttled = false
	}
	if n := len(p.samples); n == 0 || p.now >= p.samples[n-1].at+p.SensorEvery {
		p.samples = append(p.samples, sample{p.now, p.temp})
	}
}

// read is what the sensor shows now.
func (p *plant) read() float64 {
	v := p.temp
	for i := len(p.samples) - 1; i >= 0; i-- {
		v = p.samples[i].value
		if p.samples[i].at <= p.now-p.SensorLag {
			break
		}
	}
	if p.Floor {
		return math.Floor(v)
	}
	return math.Round(v)
}

func (p *plant) layerSeconds() float64 {
	s := p.Layer * (1 + p.Jitter*p.rng.NormFloat64())
	if p.throttled {
		s *= slowdown
	}
	return max(s, p.Layer/2)
}

// moment is what a run looked like in one second.
type moment struct {
	temp, duty float64
	rest       float64 // mean seconds before a layer
	layer      float64 // mean seconds a layer took
	layers     int
	most       float64 // longest rest
}

// run works for some seconds under a controller, as exec does; without one where c is nil.
func (p *plant) run(c *Controller, seconds float64) (log []moment) {
	var l ledger
	var m moment
	var busySum, pending, since, rested float64
	begin, sense, second := p.now, p.now, p.now
	dur := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	settle := func() { // tell what ran since the last time
		l.ran(dur(pending), dur(since-pending), c.Duty())
		c.Ran(dur(pending), dur(since-pending), dur(rested))
		pending, since, rested = 0, 0, 0
	}
	for p.now < begin+seconds {
		if c != nil && p.now >= sense {
			sense += 0.5
			settle()
			c.Sense(dur(p.now), Reading{TempC: p.read()}, true)
		}
		if c != nil && c.Duty() < 1 && l.due(dur(pending), c.Duty()) {
			settle()
			if rest := l.rest().Seconds(); rest > 0 {
				m.rest, m.most = m.rest+rest, max(m.most, rest)
				rest += 60e-6 + p.Oversleep*p.rng.Float64()
				p.advance(rest, false)
				since, rested = since+rest, rested+rest
			}
		}
		s := p.layerSeconds()
		p.advance(s, true)
		p.advance(p.Gap, false)
		pending, since = pending+s, since+s+p.Gap
		busySum += s
		m.layers++
		if p.now >= second+1 {
			m.temp, m.duty = p.temp, busySum/(p.now-second)
			m.layer, m.rest = busySum/float64(m.layers), m.rest/float64(m.layers)
			log = append(log, m)
			second, busySum, m = p.now, 0, moment{}
		}
	}
	return log
}
