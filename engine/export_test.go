package engine

import (
	"leat/vk"
	"leat/vk/file"
)

// WithFault makes o's reads of weights fail where fault says so.
func WithFault(o Options, fault file.Fault) Options {
	o.fault = fault
	return o
}

// WithoutClock has o's model run on a device whose clock can't be read, or which has no
// timestamps at all.
func WithoutClock(o Options, noStamps bool) Options {
	o.opened = func(d *vk.Device) {
		d.Features.CalibratedTimestamps = false
		for _, q := range append(d.Transfers, d.Compute) {
			if noStamps {
				q.TimestampBits = 0
			}
		}
	}
	return o
}

// WithLanes makes o upload on n lanes, though the device may have fewer queues.
func WithLanes(o Options, n int) Options {
	o.queues = n
	return o
}

// Passed are the bytes that went through the rates of a model that has them.
func (m *Model) Passed() (link, disk, vram int64) {
	return m.rates.link.Passed(), m.rates.disk.Passed(), m.rates.vram.Passed()
}
