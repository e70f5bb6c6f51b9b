package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// work is a model on a device without a sensor.
type work struct {
	rng    *rand.Rand
	layers int
	layer  time.Duration
	noise  float64 // of each layer
	common float64 // of a whole step: another program on the device
	bursts float64 // share of steps that another program makes half as long again
	grow   float64 // how much longer each step takes than the one before, of the first
	clock  float64 // speed; 1: cool
	now    time.Duration
	depth  float64
}

func (w *work) step(d *Drift) {
	common := 1 + w.common*w.rng.NormFloat64()
	if w.rng.Float64() < w.bursts {
		common *= 1.5
	}
	w.depth += w.grow
	for l := range w.layers {
		cost := float64(w.layer) * (1 + w.depth)
		busy := time.Duration(cost * common / w.clock * (1 + w.noise*w.rng.NormFloat64()))
		d.Ran(Key{Unit: l, Rows: 1}, math.Sqrt(cost), busy) // the estimate knows but half of it
		w.now += busy
	}
	d.Step(w.now)
}

func TestDrift(t *testing.T) {
	quiet := work{layers: 16, layer: time.Millisecond, noise: 0.02, common: 0.005}
	with := func(change func(*work)) work { w := quiet; change(&w); return w }
	for _, tt := range []struct {
		name string
		w    work
		drop float64 // of the clock, after a while; 1: none
		slow bool
	}{
		{"quiet", quiet, 1, false},
		{"noisy layers", with(func(w *work) { w.noise = 0.3 }), 1, false},
		{"noisy steps", with(func(w *work) { w.common = 0.1 }), 1, false},
		{"slow noisy steps", with(func(w *work) { w.common, w.layer = 0.1, 30*time.Millisecond }), 1, false},
		{"another program now and then", with(func(w *work) { w.bursts = 0.2 }), 1, false},
		{"context grows", with(func(w *work) { w.grow = 0.0001 }), 1, false},
		{"few layers", with(func(w *work) { w.layers, w.noise = 2, 0.05 }), 1, false},
		{"clock drops by a tenth", quiet, 0.9, true},
		{"clock drops by a third", quiet, 0.67, true},
		{"drops while context grows", with(func(w *work) { w.grow = 0.0001 }), 0.85, true},
		{"drops among noisy layers", with(func(w *work) { w.noise = 0.2 }), 0.8, true},
		{"drops among noisy steps", with(func(w *work) { w.common = 0.1 }), 0.7, true},
		{"drops with slow steps", with(func(w *work) { w.layer = 30 * time.Millisecond }), 0.85, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(20) {
				w, d := tt.w, NewDrift()
				w.rng, w.clock = rand.New(rand.NewPCG(seed, 2)), 1
				for w.now < 60*time.Second {
					w.step(d)
					if ratio, sure := d.Slow(); sure {
						t.Fatalf("seed %d: slow by %.3f after %s at full clock", seed, ratio, w.now)
					}
				}
				w.clock = tt.drop
				end := w.now + 20*time.Second
				slow := false
				for w.now < end {
					w.step(d)
					_, sure := d.Slow()
					slow = slow || sure
				}
				ratio, _ := d.Slow()
				if slow != tt.slow {
					t.Fatalf("seed %d: slow %t (ratio %.3f), wanted %t", seed, slow, ratio, tt.slow)
				}
				if tt.slow && math.Abs(ratio*tt.drop-1) > 0.1 {
					t.Errorf("seed %d: ratio %.3f, wanted %.3f", seed, ratio, 1/tt.drop)
				}
			}
		})
	}
}

// A device that throttles and has no sensor is kept from it, with fewer changes of speed
// than it has alone; one whose clock was lowered for another reason is let go.
func TestGovernor(t *testing.T) {
	p, _ := randomPlant(7)
	p.R, p.FullW, p.IdleW, p.Ambient, p.Layer, p.Jitter = 0.3, 200, 20, 30, 2e-3, 0.01
	p.C, p.DieTau, p.DieK, p.ThrottleC = 60/p.R, 0, 0, 82 // full duty ends at 90 °C
	p.temp, p.sink = 40, 40
	d, g := NewDrift(), NewGovernor()
	changes, throttled, seconds, busy := 0, 0.0, 0.0, 0.0
	decided := 0.0
	for p.now < 1800 {
		was := p.throttled
		step := 0.0
		for l := range 16 {
			s := p.layerSeconds()
			p.advance(s, true)
			p.advance(s*(1/g.Duty()-1), false)
			step += s
			d.Ran(Key{Unit: l, Rows: 1}, 1, time.Duration(s*1e9))
		}
		now := time.Duration(p.now * 1e9)
		d.Step(now)
		if p.now > decided+0.5 {
			decided = p.now
			g.Decide(now, d)
		}
		if p.now > 900 {
			seconds, busy = seconds+step/g.Duty(), busy+step
			if p.throttled {
				throttled += step / g.Duty()
			}
			if p.throttled != was {
				changes++
			}
		}
	}
	if throttled > 0.1*seconds || changes > 16 || busy < 0.7*seconds {
		t.Errorf("in 15 minutes: throttled %.0f %% of the time, %d changes, busy %.0f %%", 100*throttled/seconds, changes, 100*busy/seconds)
	}
	t.Logf("in 15 minutes: throttled %.1f %% of the time, %d changes, busy %.1f %%; %.1f %% would do", 100*throttled/seconds, changes, 100*busy/seconds, 100*p.balance(p.ThrottleC))

	w := work{rng: rand.New(rand.NewPCG(1, 1)), layers: 16, layer: time.Millisecond, noise: 0.02, clock: 1}
	d, g = NewDrift(), NewGovernor()
	least := 1.0
	for w.now < 15*time.Minute {
		if w.now > time.Minute {
			w.clock = 0.7
		}
		w.step(d)
		g.Decide(w.now, d)
		least = min(least, g.Duty())
	}
	if least > 0.9 || g.Duty() < 1 {
		t.Errorf("a clock lowered for good: least duty %.2f, in the end %.2f", least, g.Duty())
	}
}
