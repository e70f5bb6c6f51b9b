// Package weights makes the plan true: it holds the resident units in VRAM and
// streams the others through a ring of slots, disk or host memory to VRAM, ahead of
// the step that needs them.
//
// Two timelines keep the ring safe. A unit's ticket, on the uploader's timeline,
// says that its bytes are there: the step waits for it on the device. The value
// given to [Store.Release], on the compute timeline, says when a slot may be
// overwritten: the upload waits for it on the device.
package weights
