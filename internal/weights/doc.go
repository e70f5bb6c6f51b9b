// Package weights makes the plan true: it brings units to VRAM ahead of the step that
// needs them, the resident ones once, the others through a ring, token after token.
//
// Three goroutines share the work. The walker goes through the units in execution
// order and asks the disk for their pieces. The feeder takes the pieces in the same
// order as they arrive, finds the unit a place, and submits the uploads. The third
// pins memory for the host tier, a block ahead of the walker. They run across steps,
// so that a token's first units load while the last one ends, and a model decodes
// while its resident units still load.
//
// Until a first step begins they fill what is kept, VRAM and the host tier; from then on
// they bring units as a step asks for them. Between two steps all may be stopped, and
// begun anew with a plan that takes less VRAM. Where device and host have one memory
// nothing is uploaded: the disk is read to where the device reads, and the host waits
// until a place in the ring is free.
//
// Two timelines keep the ring safe. A unit's ticket says that its bytes are there: the
// step waits for it on the device. The value given to [Store.Release], on the compute
// timeline, says when its place may be overwritten: the upload waits for it on the
// device. Nothing is submitted that waits for what is not submitted yet, so one queue
// is enough.
package weights
