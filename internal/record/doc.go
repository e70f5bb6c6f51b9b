// Package record turns operations of package arch into dispatches: a function for each kind of operation says which
// kernels run it, with what arguments. It decides nothing about when work is submitted, except that it cuts work that would
// run too long in one submission, or about where weights live.
package record
