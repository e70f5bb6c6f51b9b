// Package kernels records the kernels of the shaders' table on a device.
//
// An op has one variant or several, each in a file of its own: what it needs of a device, why it may not fit a request, how it
// is recorded. [Recorder] keeps what an op's place among others asks for: memory, barriers, cost. [Kernels] owns the pipelines,
// each built and tested when it is first used.
package kernels
