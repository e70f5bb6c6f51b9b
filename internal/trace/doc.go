// Package trace keeps who was busy when: the disk, the link, the device, the host.
//
// A [Recorder] collects [Span] values between Start and Stop, all on one clock, and
// allocates nothing while it does. [Busy] adds up how long a lane worked,
// [WritePerfetto] writes a timeline for ui.perfetto.dev.
package trace
