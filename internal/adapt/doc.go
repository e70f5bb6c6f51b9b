// Package adapt says when a running model must give VRAM back to other programs.
//
// Where the driver tells its budget, that is asked, at most about once a second.
// Elsewhere the only sign is time: a driver that runs out of VRAM moves some of ours to
// host memory, and work on resident weights takes several times as long from one
// moment to the next. Both are pure: the caller has the clock, the budget and the times.
package adapt
