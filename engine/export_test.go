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

// WithDeviceFault makes o's calls of Vulkan fail where fault says so.
func WithDeviceFault(o Options, fault vk.Fault) Options {
	o.device = fault
	return o
}

// WithLanes makes o upload on n lanes, though the device may have fewer queues.
func WithLanes(o Options, n int) Options {
	o.queues = n
	return o
}
