// Package xfer brings bytes to device memory, with a ticket for every upload.
//
// An [Uploader] owns a ring of staging slots and one lane, a queue with a timeline,
// for each transfer queue. A slot is acquired, filled, its bytes are submitted, and it
// is handed back with the ticket that Submit returned: the values that the lanes'
// timelines have once the bytes are there. Kernels wait for [Uploader.Points].
package xfer
