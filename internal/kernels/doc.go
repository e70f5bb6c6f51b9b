// Package kernels records the kernels of the shaders' table on a device.
//
// An op has one variant or several, each in a file of its own, which says what the variant needs of a device, why it may not fit a request, and how it
// is recorded. [Recorder] handles what depends on other ops: memory, barriers, the sum of costs. [Kernels] owns the pipelines,
// each built and tested when it is first used.
package kernels
