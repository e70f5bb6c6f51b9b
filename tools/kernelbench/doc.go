// Kernelbench measures the kernels of leat/shaders on a device: GB/s or TFLOP/s of each, and how much that is of the
// device's ceiling, which it measures in the same run. Its lines are benchstat's.
//
// Weights rotate through more memory than caches hold, and the device's own timestamps are read. By default a barrier
// stands between any two dispatches, as where one needs the other's result.
package main
