package adapt

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name        string
		bytes       int64
		first, free int64
		give        int64
	}{
		{"plenty", 8 << 30, 2 << 30, 1 << 30, 0},
		{"just enough", 8 << 30, 2 << 30, 64 * mib, 0},
		{"too little", 8 << 30, 2 << 30, 63 * mib, (4*64 - 63) * mib},
		{"over budget", 8 << 30, 2 << 30, -500 * mib, (4*64 + 500) * mib},
		{"chosen tight", 8 << 30, 40 * mib, 21 * mib, 0},
		{"chosen tight, then less", 8 << 30, 40 * mib, 10 * mib, 70 * mib},
		{"over budget from the beginning", 8 << 30, -10 * mib, -10 * mib, 10 * mib},
		{"small model", 64 * mib, 2 << 30, mib / 2, 4*mib - mib/2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBudget(c.bytes)
			if c.first >= 0 && b.Give(c.first) != 0 {
				t.Error("the first look gave something back")
			}
			if got := b.Give(c.free); got != c.give {
				t.Errorf("give %d, wanted %d", got, c.give)
			}
		})
	}
	b := NewBudget(1)
	if !b.Due(0) || b.Due(900*time.Millisecond) || !b.Due(time.Second) || b.Due(1900*time.Millisecond) {
		t.Error("it is not asked once a second")
	}
}

// device is a device with a speed, seen through a noisy clock.
type device struct {
	rng  *rand.Rand
	slow float64
}

func (v *device) step(d *Drift, rows int, clock float64) float64 {
	for range 5 {
		cost := float64(rows) + 3
		d.Ran(rows, cost, time.Duration(cost*v.slow*1e6*(1+v.rng.Float64()/5)))
	}
	return d.Step(clock)
}

// TestDrift: only a device that becomes several times slower for a while is a sign, not
// a hot one, a freak step, or prompts between tokens; and it is one once until it helped.
func TestDrift(t *testing.T) {
	v := &device{rng: rand.New(rand.NewPCG(1, 2)), slow: 1}
	d := NewDrift()
	signs := func(steps int, rows func(i int) int, clock float64) (n int) {
		for i := range steps {
			if v.step(d, rows(i), clock) > 0 {
				n++
			}
		}
		return n
	}
	one := func(int) int { return 1 }
	mixed := func(i int) int { return 1 + i%2*511 }
	if n := signs(100, mixed, 1); n != 0 {
		t.Fatalf("%d signs of a steady device", n)
	}
	v.slow = 2
	if n := signs(100, mixed, 1); n != 0 {
		t.Errorf("%d signs of a device half as fast", n)
	}
	v.slow = 9
	if n := signs(3, one, 1); n != 0 {
		t.Errorf("%d signs of three slow steps", n)
	}
	v.slow = 1
	signs(30, mixed, 1)
	v.slow = 6
	if n := signs(100, one, 2.5); n != 0 {
		t.Errorf("%d signs of a device that says it is 2.5 times slower by heat", n)
	}
	v.slow = 9
	if n := signs(10, one, 1); n != 1 {
		t.Fatalf("%d signs in ten steps of a device nine times slower, wanted 1", n)
	}
	v.slow = 5.5 // it helped, and more is needed
	if n := signs(40, one, 1); n != 1 {
		t.Errorf("%d signs after one that helped, wanted 1", n)
	}
	if n := signs(300, one, 1); n != 0 {
		t.Errorf("%d signs more, though the last one changed nothing", n)
	}
}

func TestDriftAllocates(t *testing.T) {
	v := &device{rng: rand.New(rand.NewPCG(1, 2)), slow: 1}
	d := NewDrift()
	v.step(d, 1, 1)
	if n := testing.AllocsPerRun(100, func() { v.step(d, 1, 1) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
