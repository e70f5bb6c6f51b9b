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

	below      = 0.5   // °C under the target: the goal, since a sensor may round down
	sensorLag  = 1.0   // seconds by which sensors are late, about
	near       = 6.0   // seconds in which to reach the goal, at least
	far        = 120.0 // seconds in which to reach the goal, at most: more seconds make the gain smaller
	maxGain    = 0.08  // change of duty for a °C, at most: rests are smooth
	maxRise    = 0.2   // rise of duty in a second, at most
	maxFall    = 0.6   // fall of duty in a second, at most
	soon       = 10.0  // seconds: a device that would not reach the goal by then needs no rest
	steady     = 3.0   // seconds over which the duty without rests is averaged
	warm       = 25.0  // °C under the goal, below which no device rests
	needed     = 0.96  // rests begin where the wanted duty is below this share of the duty without rests
	persistent = 3     // readings in a row at which rests must be needed before they begin
	calm       = 5.0   // seconds without need after which rests end
	glitch     = 15.0  // °C between a reading and the model that no device can cause
	over       = 1.0   // °C over the target from which on readings lower the duty, whatever the model says
)

// Controller finds the duty, the share of time a device may work, that keeps it at a
// temperature. It knows no clock: its callers say what ran and what was read when.
type Controller struct {
	target float64
	f      *filter

	last   time.Duration // time of the last reading
	told   workTimes     // what Ran told since the last reading
	was    float64       // duty between the last two readings
	free   float64       // duty there would be without rests
	worked bool          // free is known
	lid    float64       // most duty allowed, whatever the model says: lowered while readings are over the target
	past   []stretch     // duty of the last sensorLag seconds, oldest first

	duty   float64 // the duty decided at the last reading
	active bool    // rests are inserted
	needs  int     // readings in a row at which rests were needed, while not active
	calm   float64 // seconds for which no rests were needed, while active

	ceiling float64 // °C at which the device said that it slows because of heat; 0: it never did
}

// workTimes are seconds in which the device was busy and idle. rested is the part of idle that was rests.
type workTimes struct{ busy, idle, rested float64 }

// stretch is a duty held for some seconds.
type stretch struct{ seconds, duty float64 }

// NewController makes a controller for a target in °C.
func NewController(targetC float64) *Controller {
	return &Controller{target: targetC, duty: 1, free: 1, lid: 1}
}

// Ran tells of work done: for how long the device was busy, for how long it was idle before, and how
// much of the idle time was rests.
func (c *Controller) Ran(busy, idle, rested time.Duration) {
	c.told.busy += busy.Seconds()
	c.told.idle += min(idle.Seconds(), 1)
	c.told.rested += min(rested.Seconds(), idle.Seconds(), 1)
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
		c.told = workTimes{}
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

// lately is the duty in the dt seconds since the last reading, by what Ran told. Where too little was told of a step under way, it is the
// duty before.
func (c *Controller) lately(dt float64, working bool) float64 {
	told := c.told.busy + c.told.idle
	duty := c.was
	switch {
	case told >= dt/4:
		duty = c.told.busy / told
		free, share := c.told.busy/max(told-c.told.rested, 1e-9), min(dt/steady, 1)
		if !c.worked {
			c.worked, share = true, 1
		}
		c.free += (min(free, 1) - c.free) * share
	case !working:
		duty = min(c.told.busy/dt, 1)
	}
	if told >= dt/4 || !working {
		c.told = workTimes{}
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

// listen lowers the ceiling where the device says that it slows because of heat below the target,
// and raises it again by a degree in five minutes.
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

// decide sets the duty with which the model reaches the goal and stays there.
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

// switchOver begins rests once they have been needed for several readings, and ends them after some seconds without need. want is the
// wanted duty.
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
