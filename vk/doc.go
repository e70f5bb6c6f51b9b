// Package vk is typed Vulkan for compute.
//
// An [Instance] finds devices, a [Device] is one opened device with a compute
// queue and a transfer queue, which are the same [Queue] where the hardware
// has only one. Memory is a [Buffer] with an address that shaders take as a
// push constant; there are no descriptors. Order between queues and the host
// is kept by a [Timeline], a counter that only grows.
//
// # Who closes what
//
// Who makes an object closes it: Buffer, Timeline, QueryPool, Pipeline and
// CommandPool before their Device, Devices before their Instance. Closing one
// of these while the device still uses it is the caller's fault: wait for its
// timeline first. Device.Close and Instance.Close wait for the device, close
// what was left open and say so in their error. Every Close may be called
// twice. There are no finalizers.
//
// # Errors
//
// A failed Vulkan call is a [*CallError]; errors.Is(err, ErrDeviceLost) tells
// a lost device, after which every object of that Device only waits to be
// closed. Some errors carry a Hint method that says what to install.
package vk
