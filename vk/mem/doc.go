// Package mem counts every byte of device and pinned memory against a budget.
//
// A [Heap] hands out buffers until its budget is spent, a [Span] is a piece of
// a buffer with its address and the ticket that says when its bytes are there.
package mem
