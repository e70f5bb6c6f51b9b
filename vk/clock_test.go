package vk

import (
	"math/rand/v2"
	"testing"
	"time"
)

// blind is the clock of a device that can't be asked, with so many bits and ns per tick.
func blind(bits int, period float64) *Clock {
	d := &Device{Compute: &Queue{TimestampBits: bits}, Physical: &PhysicalDevice{Limits: Limits{TimestampPeriod: period}}}
	return newClock(d)
}

func TestClockBetween(t *testing.T) {
	for _, c := range []struct {
		name     string
		bits     int
		from, to uint64
		want     time.Duration
	}{
		{"forward", 64, 100, 150, 100},
		{"back", 64, 150, 100, -100},
		{"over the end", 36, 1<<36 - 10, 15, 50},
		{"back over the end", 36, 15, 1<<36 - 10, -50},
		{"bits that do not count", 36, 7<<36 + 5, 3<<36 + 6, 2},
		{"over the end of all bits", 64, ^uint64(0), 4, 10},
		{"no timestamps", 0, 3, 5, 4},
	} {
		if got := blind(c.bits, 2).Between(c.from, c.to); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// What was seen is mapped to where it was seen, though the two clocks drift apart; while
// they don't, wide sights do not move what narrow ones have found.
func TestClockSaw(t *testing.T) {
	for _, drift := range []float64{0, 100e-6, -100e-6} {
		c := blind(36, 52.08)
		if _, ok := c.At(1); ok {
			t.Fatal("something is known of nothing")
		}
		r := rand.New(rand.NewPCG(1, 1))
		start := time.Now()
		moment := func(ns float64) (ticks uint64, at time.Time) {
			return uint64(1<<36-1000+ns*(1+drift)/52.08) & (1<<36 - 1), start.Add(time.Duration(ns))
		}
		var first time.Time
		for i := range 2000 {
			ticks, at := moment(float64(i) * 1e6)
			after, before := at.Add(-time.Duration(r.IntN(1e6))), at.Add(time.Duration(r.IntN(1e5)))
			if i == 0 {
				after, before = at.Add(-time.Microsecond), at.Add(time.Microsecond)
			}
			c.Saw(ticks, after, before)
			got, ok := c.At(ticks)
			if !ok || got.Before(after) || got.After(before) {
				t.Fatalf("drift %v, sight %d: mapped to %v, want %v to %v", drift, i, got.Sub(start), after.Sub(start), before.Sub(start))
			}
			far, _ := moment(0)
			if back, _ := c.At(far); i == 0 {
				first = back
			} else if d := back.Sub(first).Abs(); drift == 0 && d > 3*time.Microsecond {
				t.Fatalf("sight %d moved the first by %v", i, d)
			}
		}
	}
}
