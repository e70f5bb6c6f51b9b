// Package selftest compares kernels on a device with their Go reference, in the program itself: a pipeline before its first use ([Prove]), and
// all kernels for leat doctor ([Quick], [Sample], [Sweep]).
//
// A [Case] is one kernel on one shape: its inputs are random, its outputs are poisoned with NaN, and between any two
// buffers lies a guard. After the run the outputs must agree with package ref within the case's NMSE (the sum of
// squared errors over the sum of squares), every other byte must be what it was, and a second run must give the same
// bits. Cases named "same bits" run an op in two ways that must not differ: in a batch, and row by row.
//
// The functions that make a case of a shape are all here, for nearly every kernel needs its own at run time; which shapes the tests try is for
// package conform. The linker leaves out of the program what only that package calls.
package selftest
