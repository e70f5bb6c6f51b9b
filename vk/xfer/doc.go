// Package xfer brings bytes to device memory, with a ticket for every upload.
//
// An [Uploader] owns a ring of staging slots and one timeline. A slot is
// acquired, filled by the caller, submitted; the ticket that Submit returns is
// the timeline's value once the bytes are there. Kernels wait for it with
// vk.Point{Timeline: u.Timeline(), Value: ticket}.
package xfer
