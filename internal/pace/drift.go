package pace

import (
	"math"
	"slices"
	"time"
)

// Key names work that takes the same time while the device runs at the same speed: a
// part of the model at a shape.
type Key struct {
	Unit int // the one that the submission ends with
	Rows int // tokens

	cost int // by a few percent: a growing context, or another split, is other work
}

// Drift sees a device without a sensor slow down: it compares how long work takes with
// how long the same work took when the device was cool. It knows no clock.
//
// Work seen for the first time has no baseline; it is given one that fits how slow the
// device is just then, so that a growing context never looks like heat, nor hides it.
type Drift struct {
	base  map[Key]baseline
	born  map[Key]float64 // without cost: the level that its newest baseline began at
	ratio []float64       // of this step's submissions

	bin      sum // of the steps of the last binSeconds
	binStart time.Duration
	bins     []float64 // oldest first
	best     float64   // the lowest level: cool
}

// baseline is the time that work took, for each unit of its cost.
type baseline struct {
	time float64
	n    int
}

type sum struct {
	total float64
	n     int
}

const (
	binSeconds    = 0.2
	window        = 20 // bins whose median is the level
	fewest        = 8  // bins before anything is said
	learning      = 8  // times a baseline is averaged over
	mostBaselines = 1 << 14
	leastDrift    = 1.06 // below which no device is called slow
	clearly       = 6    // times the noise
	costSteps     = 16   // to a doubling
)

// NewDrift makes a detector for a cool device.
func NewDrift() *Drift { return &Drift{base: map[Key]baseline{}, born: map[Key]float64{}} }

// Ran tells how long one submission took, and what it was expected to cost, in any unit.
func (d *Drift) Ran(k Key, cost float64, busy time.Duration) {
	if busy <= 0 || cost <= 0 {
		return
	}
	family := k
	k.cost = int(math.Floor(costSteps * math.Log2(cost)))
	took := busy.Seconds() / cost
	b := d.base[k]
	if b.n > 0 {
		d.ratio = append(d.ratio, took/b.time)
	}
	if b.n < learning {
		if len(d.base) >= mostBaselines {
			clear(d.base)
			b = baseline{}
		}
		if b.n == 0 {
			d.born[family] = d.birth(family)
		}
		b.n++
		b.time += (took/d.born[family] - b.time) / float64(b.n)
		d.base[k] = b
	}
}

// birth is how slow to take the device for when the cost of a work changes. What little
// the level rose since the last time is an estimate's error, which would add up.
func (d *Drift) birth(family Key) float64 {
	level := d.level()
	if before := d.born[family]; before > 0 && math.Abs(level/before-1) < leastDrift-1 {
		return before
	}
	return level
}

// Step ends a step at now.
func (d *Drift) Step(now time.Duration) {
	if len(d.ratio) > 0 {
		slices.Sort(d.ratio)
		d.bin.total += d.ratio[len(d.ratio)/2]
		d.bin.n++
		d.ratio = d.ratio[:0]
	}
	if (now - d.binStart).Seconds() < binSeconds {
		return
	}
	d.binStart = now
	if d.bin.n == 0 {
		return
	}
	d.bins = append(d.bins, d.bin.total/float64(d.bin.n))
	d.bin = sum{}
	if len(d.bins) > window {
		d.bins = append(d.bins[:0], d.bins[1:]...)
	}
	if level := d.level(); len(d.bins) >= fewest && (d.best == 0 || level < d.best) {
		d.best = level
	}
}

// level is how slow the device is now, against the baselines.
func (d *Drift) level() float64 {
	if len(d.bins) < fewest {
		return 1
	}
	return median(d.bins)
}

// Slow is how much longer work takes than when the device was cool, and whether that is
// more than noise makes of it.
func (d *Drift) Slow() (ratio float64, sure bool) {
	if d.best == 0 || len(d.bins) < fewest {
		return 1, false
	}
	ratio = d.level() / d.best
	return ratio, ratio > leastDrift+clearly*d.noise()
}

// noise is the standard deviation to expect of the level.
func (d *Drift) noise() float64 {
	m := median(d.bins)
	off := make([]float64, len(d.bins))
	for i, b := range d.bins {
		off[i] = math.Abs(b - m)
	}
	return 1.4826 * 1.25 * median(off) / math.Sqrt(float64(len(off))) / m
}

// Accept takes the speed of now for that of a cool device.
func (d *Drift) Accept() {
	if len(d.bins) >= fewest {
		d.best = d.level()
	}
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

// Governor finds a duty from drift alone. It sees only that the device slows, not how hot
// it is: so it rests more until the slowness is gone, stays there, and tries after a
// while whether less would do. Where rests change nothing, the cause isn't heat: it
// takes the new speed for the right one and lets go.
type Governor struct {
	duty  float64
	last  time.Duration
	hold  time.Duration // when less rest may be tried
	slow  float64       // ratio when resting began
	since time.Duration
	edge  float64 // duty at which the device slowed last; 0: never
}

const (
	leastDriftDuty = 0.5
	fall           = 0.02  // of duty in a second while the device is slow
	rise           = 0.002 // while it isn't
	creep          = 0.0002
	patience       = 60 * time.Second // that rests are given to show an effect
	holding        = 30 * time.Second
	gone           = 1.03 // ratio at which a device is cool again
)

// NewGovernor makes a governor that lets the device work all the time.
func NewGovernor() *Governor { return &Governor{duty: 1} }

// Duty is the share of time the device may work.
func (g *Governor) Duty() float64 { return g.duty }

// Decide looks at the drift at now.
func (g *Governor) Decide(now time.Duration, d *Drift) {
	dt := min((now - g.last).Seconds(), 1)
	g.last = now
	ratio, sure := d.Slow()
	resting := g.duty < 1
	switch {
	case sure && !resting:
		g.slow, g.since, g.edge = ratio, now, 1
		g.duty -= fall * dt
		g.hold = now + holding
	case sure:
		if now-g.since > patience && g.duty <= leastDriftDuty+0.01 && ratio-1 > (g.slow-1)*0.7 {
			d.Accept()
			g.hold, g.edge = now, 0
			return
		}
		g.edge = min(max(g.edge, g.duty), 1)
		g.duty = max(g.duty-fall*dt, leastDriftDuty)
		g.hold = now + holding
	case ratio < gone && resting && now > g.hold:
		speed := rise
		if g.edge > 0 && g.duty > g.edge-0.05 {
			speed = creep
		}
		g.duty = min(g.duty+speed*dt, 1)
	}
}
