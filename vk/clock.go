package vk

import (
	"sync"
	"time"

	"leat/vk/internal/raw"
)

// Clock maps timestamps of a device's queues onto the host's clock. It knows how far
// the two are apart as exactly as it was told between which moments of the host a
// timestamp was taken: by the device, where that can be asked, else by [Clock.Saw].
// Its methods are safe for use by several goroutines.
type Clock struct {
	dev  *Device
	mask uint64 // the bits that count on every queue

	mu    sync.Mutex
	known bool
	ticks uint64 // taken at the moment at, as far as we know
	at    time.Time
	asked time.Time     // when the device was asked last
	width time.Duration // see Width
	info  raw.CalibratedTimestampInfoEXT
	now   [2]uint64 // ticks, and their deviation
}

const (
	askAgain    = 100 * time.Millisecond // two clocks drift apart by up to 10 µs meanwhile
	closeEnough = 20 * time.Microsecond
	mostTries   = 16 // to read both clocks at once
)

func newClock(d *Device) *Clock {
	c := &Clock{dev: d, mask: ^uint64(0)}
	for _, q := range append([]*Queue{d.Compute}, d.Transfers...) {
		if q.TimestampBits > 0 && q.TimestampBits < 64 {
			c.mask &= 1<<q.TimestampBits - 1
		}
	}
	c.info.SType = raw.StructureTypeCalibratedTimestampInfoEXT
	c.info.TimeDomain = raw.TimeDomainDeviceEXT
	return c
}

// Between is the time from one timestamp to another, of any two queues of the device:
// negative where to is the earlier. It sees through an overflow of the counter as long
// as they are less than half its range apart.
func (c *Clock) Between(from, to uint64) time.Duration {
	ticks := (to - from) & c.mask
	period := c.dev.Physical.Limits.TimestampPeriod
	if ticks > c.mask/2 {
		return -time.Duration(float64((from-to)&c.mask) * period)
	}
	return time.Duration(float64(ticks) * period)
}

// At is the moment at which a timestamp was taken; false if nothing is known of that yet.
func (c *Clock) At(ticks uint64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dev.Features.CalibratedTimestamps && (!c.known || time.Since(c.asked) > askAgain) {
		c.ask()
	}
	return c.at.Add(c.Between(c.ticks, ticks)), c.known
}

// Width is how far [Clock.At] may be off: the longest that a reading of both clocks took, which is microseconds unless this
// process lost its processor in each of many tries.
func (c *Clock) Width() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.width
}

// Saw tells that a timestamp was taken between two moments of the host. It matters only
// where the device can't be asked.
func (c *Clock) Saw(ticks uint64, after, before time.Time) {
	if c.dev.Features.CalibratedTimestamps {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.known, c.ticks, c.at = true, ticks, before
	}
	c.fit(ticks, after, before)
}

// ask reads the device's clock, between two readings of the host's that are close
// together: where this thread lost its processor meanwhile, it tries again.
func (c *Clock) ask() {
	var ticks uint64
	var after, before time.Time
	for try := range mostTries {
		t0 := time.Now()
		if r := c.dev.fn.GetCalibratedTimestampsEXT(c.dev.handle, 1, &c.info, &c.now[0], &c.now[1]); r < 0 {
			return // a lost device: others will say so
		}
		if t1 := time.Now(); try == 0 || t1.Sub(t0) < before.Sub(after) {
			ticks, after, before = c.now[0], t0, t1
		}
		if before.Sub(after) < closeEnough {
			break
		}
	}
	c.asked, c.width = before, max(c.width, before.Sub(after))
	if !c.known {
		c.known, c.ticks, c.at = true, ticks, after.Add(before.Sub(after)/2)
	}
	c.fit(ticks, after, before)
}

// fit corrects the mapping by as little as makes ticks fall between after and before:
// so it does not jump where the clocks agree, and follows where they drift apart.
func (c *Clock) fit(ticks uint64, after, before time.Time) {
	at := c.at.Add(c.Between(c.ticks, ticks))
	if at.Before(after) {
		at = after
	}
	if at.After(before) {
		at = before
	}
	c.ticks, c.at = ticks, at
}

// calibrates reports whether the host can read the clock of p's timestamps.
func (p *PhysicalDevice) calibrates() bool {
	if !p.has(extCalibrated) && !p.has(extCalibratedKHR) {
		return false
	}
	var domains []raw.TimeDomainEXT
	err := enumerate("vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", &domains, func(n *uint32, d *raw.TimeDomainEXT) raw.Result {
		return p.instance.fn.GetPhysicalDeviceCalibrateableTimeDomainsEXT(p.handle, n, d)
	})
	for _, d := range domains {
		if err == nil && d == raw.TimeDomainDeviceEXT {
			return true
		}
	}
	return false
}
