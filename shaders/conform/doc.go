// Package conform compares every kernel on a device with its Go reference.
//
// A [Case] is one kernel on one shape: its inputs are random, its outputs are poisoned with NaN, and between any two
// buffers lies a guard. After the run the outputs must agree with package ref within the case's NMSE (the sum of
// squared errors over the sum of squares), every other byte must be what it was, and a second run must give the same
// bits. Cases named "same bits" run an op in two ways that must not differ: in a batch, and row by row.
package conform
