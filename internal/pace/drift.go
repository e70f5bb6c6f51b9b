package pace

import (
	"math"
	"slices"
	"time"
)

// Key names work that takes the same time while the device runs at the same speed: a
// part of the model at a shape.
type Key struct {
	Unit int // the unit that the submission ends with
	Rows int // rows of the submission

	cost int // the expected cost, in steps of a few percent: a growing context, or another split, is other work
}

// Drift sees a device without a sensor slow down: it compares how long work takes with
// how long the same work took when the device was cool. It knows no clock.
//
// Work seen for the first time has no baseline; it is given one that fits how slow the
// device is just then, so that a growing context never looks like heat, nor hides it.
type Drift struct {
	base  map[Key]baseline
	born  map[Key]float64 // by key without cost: the level at which its newest baseline began
	ratio []float64       // of this step's submissions: time taken to baseline

	bin      sum // the steps' median ratios since binStart
	binStart time.Duration
	bins     []float64 // mean ratios of the last bins, oldest first
	best     float64   // the lowest level so far: the device's when cool
}

// baseline is the time that work takes on a cool device, for each unit of its cost, averaged over n submissions.
type baseline struct {
	time float64
	n    int
}

// sum is a sum of n ratios.
type sum struct {
	total float64
	n     int
}

const (
	binSeconds    = 0.2     // length of a bin
	window        = 20      // bins whose median is the level
	fewest        = 8       // bins before there is a level
	learning      = 8       // submissions that a baseline is averaged over
	mostBaselines = 1 << 14 // above, all are forgotten
	leastDrift    = 1.06    // level below which no device is called slow
	clearly       = 6       // standard deviations by which a slow device must be above leastDrift
	costSteps     = 16      // values of Key.cost for each doubling
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

// birth is the level at which a new baseline of a family begins: the present level, or that of the family's baseline before where the two
// differ by less than leastDrift. A small difference is an error of estimation, and such errors would add up.
func (d *Drift) birth(family Key) float64 {
	level := d.level()
	if before := d.born[family]; before > 0 && math.Abs(level/before-1) < leastDrift-1 {
		return before
	}
	return level
}

// Step tells that a step ended at now.
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

// level is how much longer work takes now than its baselines say; 1: no longer.
func (d *Drift) level() float64 {
	if len(d.bins) < fewest {
		return 1
	}
	return median(d.bins)
}

// Slow is how much longer work takes than when the device was cool, and whether noise can't explain the difference.
func (d *Drift) Slow() (ratio float64, sure bool) {
	if d.best == 0 || len(d.bins) < fewest {
		return 1, false
	}
	ratio = d.level() / d.best
	return ratio, ratio > leastDrift+clearly*d.noise()
}

// noise is the standard deviation of the level, estimated from the bins.
func (d *Drift) noise() float64 {
	m := median(d.bins)
	off := make([]float64, len(d.bins))
	for i, b := range d.bins {
		off[i] = math.Abs(b - m)
	}
	return 1.4826 * 1.25 * median(off) / math.Sqrt(float64(len(off))) / m
}

// Accept takes the present speed for that of a cool device.
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
// it is: so it lowers the duty until the slowness is gone, keeps it for a while, and then tries a
// higher one. Where rests change nothing, heat is not the cause: it accepts the new speed
// and ends the rests.
type Governor struct {
	duty  float64
	last  time.Duration // when Decide was called last
	hold  time.Duration // from then on a higher duty may be tried
	slow  float64       // Drift.Slow when rests began
	since time.Duration // when rests began
	edge  float64       // duty at which the device slowed last; 0: never
}

const (
	leastDriftDuty = 0.5              // least duty that drift alone can ask for
	fall           = 0.02             // fall of duty in a second while the device is slow
	rise           = 0.002            // rise of duty in a second while it isn't
	creep          = 0.0002           // the same near the duty at which the device slowed last
	patience       = 60 * time.Second // how long rests may take to show an effect
	holding        = 30 * time.Second // after slowness, before a higher duty is tried
	gone           = 1.03             // ratio below which a device counts as cool again
)

// NewGovernor makes a governor that lets the device work all the time.
func NewGovernor() *Governor { return &Governor{duty: 1} }

// Duty is the share of time the device may work.
func (g *Governor) Duty() float64 { return g.duty }

// Decide sets the duty by the drift, at now.
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
