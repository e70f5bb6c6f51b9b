// Package weights brings a model's weights to VRAM ahead of the steps that read them.
//
// A source says where the bytes of a unit or an expert come from: pieces on disk, or a
// host copy in pinned memory. A [Place] says where they go in VRAM: a resident block,
// room in the ring, or a slot. A fetch is one piece on its way, and one kind of upload
// fills all places. Its ticket says when the bytes are there: the step waits for it on
// the device. The compute value at which the place was read last says when it may be
// overwritten: the upload waits for it on the device. Nothing is submitted that waits
// for work not submitted yet, so one queue is enough.
//
// [Units] are the parts of the model that every step reads, in a fixed order, so they
// are prefetched. A walker goes through them and starts their reads; a feeder finds each
// a place and uploads its pieces as they arrive. Both run on across steps: the first
// units of a token are loaded while the last token ends, and a model decodes while its
// resident units are still being loaded. [Experts] are fetched when a router has chosen
// them, by the goroutine that runs the step.
//
// Before the first step, what is kept in VRAM and host memory is loaded in order. Between
// two steps loading can be stopped and begun again with a plan that takes less VRAM. If
// device and host share memory nothing is uploaded: the disk is read into the places,
// and the host waits until a place has been read before it is overwritten.
package weights
