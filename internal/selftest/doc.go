// Package selftest compares kernels on a device with their Go reference, in the program itself: a pipeline before its first use ([Prove]), and
// all kernels for leat doctor ([Quick], [Sample], [Sweep]).
//
// A [Case] is a test of one kernel with one shape: its inputs are random, its outputs are poisoned with NaN, and there is a guard
// between any two buffers. After the run the outputs must agree with package ref within the case's NMSE (the sum of
// squared errors over the sum of squares), every other byte must be unchanged, and a second run must give the same
// bits. Cases named "same bits" compare two ways to run an op: in a batch, and row by row.
//
// A kernel has quick cases, for leat doctor, and proofs, which its pipelines must pass before they are used. The functions that make a case for a shape
// are all here, because most kernels need theirs in the program; package conform calls them to test more shapes. The linker drops those that only
// package conform calls.
package selftest
