// Package kernels records the kernels of the shaders table on a device.
//
// [Kernels] owns the pipelines, built when first used; a [Recorder] checks the arguments of an op, takes the table's
// row for it and records one dispatch. What differs between ops and types is in the table, not in code here.
package kernels
