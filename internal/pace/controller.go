package pace

import (
	"math"
	"time"
)

const (
	// MaxRest is the longest single rest.
	MaxRest = 30 * time.Millisecond
	// MinDuty is the least share of time the device is left to work: where a tenth is
	// still too hot, something else heats it, and resting more would not help.
	MinDuty = 0.1

	below      = 0.5   // °C under the target that is aimed at: a sensor may round down
	sensorLag  = 1.0   // seconds by which sensors are late, about
	near       = 6.0   // seconds in which to be at the target: so few, or
	far        = 120.0 // as many as keep the gain small
	maxGain    = 0.08  // of duty for each °C: rests are smooth
	maxRise    = 0.2   // of duty in a second
	maxFall    = 0.6
	soon       = 10.0 // seconds: who would not be at the target by then doesn't rest
	steady     = 3.0  // seconds over which the duty without rests is averaged
	warm       = 25.0 // °C under the target below which nothing ever rests
	needed     = 0.96 // of the duty without rests: where less is wanted, resting begins
	persistent = 3    // readings in a row
	calm       = 5.0  // seconds without need after which resting ends
	glitch     = 15.0 // °C between a reading and the model that no device explains
	over       = 1.0  // °C over the target, where the model is no longer believed alone
)

// Controller finds the duty, the share of time a device may work, that keeps it at a
// temperature. It knows no clock: its callers say what ran and what was read when.
type Controller struct {
	target float64
	f      *filter

	last       time.Duration
	busy, idle float64   // seconds since the last reading
	rested     float64   // of those idle, by our doing
	was        float64   // duty in the last interval
	free       float64   // duty there would be without our rests
	worked     bool      // free is known
	lid        float64   // most duty, whatever the model says
	past       []stretch // duty of the last sensorLag seconds, oldest first

	duty   float64
	active bool
	needs  int     // readings in a row that asked for rests
	calm   float64 // seconds without need

	ceiling float64 // °C, where the device itself said that it slows; 0: it didn't
}

// stretch is a duty held for some seconds.
type stretch struct{ seconds, duty float64 }

// NewController makes a controller for a target in °C.
func NewController(targetC float64) *Controller {
	return &Controller{target: targetC, duty: 1, free: 1, lid: 1}
}

// Ran tells of work done: for how long the device was busy, and idle before that, and how
// much of that idle time was a rest.
func (c *Controller) Ran(busy, idle, rested time.Duration) {
	c.busy += busy.Seconds()
	c.idle += min(idle.Seconds(), 1)
	c.rested += min(rested.Seconds(), idle.Seconds(), 1)
}

// Duty is the share of time the device may work; 1: no rest is needed.
func (c *Controller) Duty() float64 {
	if !c.active {
		return 1
	}
	return c.duty
}

// Target is the temperature that is kept: the one asked for, or less where the device
// said that it slows down below it.
func (c *Controller) Target() float64 {
	if c.ceiling > 0 {
		return min(c.target, c.ceiling)
	}
	return c.target
}

// Sense takes a reading made at now, on a clock of the caller's choice. working says that
// a step is under way, whose work may not have been told yet.
func (c *Controller) Sense(now time.Duration, r Reading, working bool) {
	if c.f == nil {
		c.f, c.last = newFilter(r.TempC), now
		c.busy, c.idle, c.rested = 0, 0, 0
		return
	}
	dt := (now - c.last).Seconds()
	if dt <= 0 {
		return
	}
	c.last = now
	if dt > 30 { // nothing is known of so long a gap: what was learnt of the device stays
		c.f.restart(r.TempC)
		c.past = nil
		dt = 1
	}
	c.was = c.lately(dt, working)
	c.follow(dt, r.TempC)
	c.listen(dt, r)
	if hot := r.TempC - c.Target() - over; hot > 0 {
		c.lid = max(min(c.lid, c.Duty())-0.02*(1+hot)*dt, MinDuty)
	} else {
		c.lid = min(c.lid+0.1*dt, 1)
	}
	c.decide(dt)
}

// lately is the duty since the last reading.
func (c *Controller) lately(dt float64, working bool) float64 {
	told := c.busy + c.idle
	duty := c.was
	switch {
	case told >= dt/4:
		duty = c.busy / told
		free, share := c.busy/max(told-c.rested, 1e-9), min(dt/steady, 1)
		if !c.worked {
			c.worked, share = true, 1
		}
		c.free += (min(free, 1) - c.free) * share
	case !working:
		duty = min(c.busy/dt, 1)
	}
	if told >= dt/4 || !working {
		c.busy, c.idle, c.rested = 0, 0, 0
	}
	return duty
}

// follow moves the model along what ran when the sensor saw it, then corrects it.
func (c *Controller) follow(dt, tempC float64) {
	c.past = append(c.past, stretch{dt, c.was})
	held := 0.0
	for _, s := range c.past {
		held += s.seconds
	}
	for due := held - sensorLag; due > 1e-9; {
		s := &c.past[0]
		part := min(due, s.seconds)
		c.f.predict(part, s.duty)
		due -= part
		if s.seconds -= part; s.seconds < 1e-9 {
			c.past = c.past[1:]
		}
	}
	if math.Abs(tempC-c.f.temp()) > glitch {
		c.f.restart(tempC) // no device heats so fast: nothing is to be learnt from it
		return
	}
	c.f.correct(tempC)
}

// listen lowers the ceiling where the device slows because of heat below the target,
// and forgets that by a degree in five minutes.
func (c *Controller) listen(dt float64, r Reading) {
	switch {
	case r.Slowed && r.TempC <= c.Target()+1:
		c.ceiling = max(min(c.Target(), r.TempC)-2*min(dt, 1)*0.5, 40)
	case c.ceiling > 0:
		if c.ceiling += dt / 300; c.ceiling >= c.target {
			c.ceiling = 0
		}
	}
}

// decide sets the duty under which the model comes to the target, and stays.
func (c *Controller) decide(dt float64) {
	goal := c.Target() - below
	f := *c.f
	for _, s := range c.past { // what the sensor has yet to show
		f.move(s.seconds, s.duty)
	}
	start, gain := f.response(near)
	for in := 2 * near; gain < 1/maxGain && in <= far; in *= 1.25 {
		start, gain = f.response(in)
	}
	want := (goal - start) / gain
	if s, g := f.response(soon); s+g*c.free < goal || f.temp() < goal-warm {
		want = 1
	}
	want = min(want, c.lid)
	want = min(max(want, c.duty-maxFall*dt, MinDuty), c.duty+maxRise*dt, 1)
	c.switchOver(want, dt)
	c.duty = want
}

// switchOver begins and ends resting, each with some reluctance.
func (c *Controller) switchOver(want, dt float64) {
	if !c.active {
		if c.needs++; want >= needed*c.free {
			c.needs = 0
		}
		c.active, c.calm = c.needs >= persistent, 0
		return
	}
	if c.calm += dt; want < c.free {
		c.calm = 0
	}
	c.active = c.calm < calm
	c.needs = 0
}
