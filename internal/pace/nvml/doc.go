// Package nvml is a binding of the part of NVIDIA's management library that says how hot
// a device is, opened at run time: without the driver there is no device, and no error
// but that.
package nvml
