package engine

import (
	"leat/vk/file"
	"leat/vk/mem"
)

// WithFault makes o's reads of weights fail where fault says so.
func WithFault(o Options, fault file.Fault) Options {
	o.fault = fault
	return o
}

// WithHeadroom makes o's model ask free, before every step, how much VRAM is left to it,
// and keep its resident weights in blocks of blockBytes.
func WithHeadroom(o Options, free func() int64, blockBytes int64) Options {
	o.headroom, o.Sweep.BlockBytes = free, blockBytes
	return o
}

// WithShared keeps o's weights in place in memory of a kind, whatever the budgets.
func WithShared(o Options, kind mem.Shared) Options {
	o.shared = kind
	return o
}

// WithLanes makes o upload on n lanes, though the device may have fewer queues.
func WithLanes(o Options, n int) Options {
	o.queues = n
	return o
}
