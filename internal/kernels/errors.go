package kernels

import "fmt"

// ArgError says that the kernels can't run with an argument of an op: a mistake in this program.
type ArgError struct {
	Op     string // name of the op, such as "mul_mat q4_k"
	What   string // name of the argument, such as "K"
	Found  any    // the argument's value
	Wanted string // the values that the kernels can run with, such as "a multiple of 256"
}

// Error names the op, the argument, its value and what was wanted.
func (e *ArgError) Error() string {
	return fmt.Sprintf("record %s: %s is %v, want %s", e.Op, e.What, e.Found, e.Wanted)
}

// BrokenError says that a variant of a kernel computes wrong on a device, so it is not used.
type BrokenError struct {
	Kernel, Device string // names of the kernel and the device
	Why            string // what the self-test found
}

// Error names the kernel, the device and what the self-test found.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("test kernel %s on %s: %s", e.Kernel, e.Device, e.Why)
}

// Hint says that a slower kernel is used instead, and that a driver update may help.
func (e *BrokenError) Hint() string {
	return "another kernel is used in its place, slower; update the driver, and see leat doctor"
}

// CrashError says that the driver crashed in a kernel in an earlier run, so it is not compiled again.
type CrashError struct {
	Kernel, Device string // names of the kernel and the device
	Why            string // how the driver crashed
}

// Error names the kernel, the device and how the driver crashed.
func (e *CrashError) Error() string {
	return fmt.Sprintf("build kernel %s on %s: %s", e.Kernel, e.Device, e.Why)
}

// Hint says how to make leat try the kernel again.
func (e *CrashError) Hint() string {
	return "update the driver, or choose another device with --device; leat doctor --retry tries the kernel again"
}

// check checks the arguments of an op and keeps the first error, which [record] returns.
type check struct {
	choice
	err error // an [*ArgError]; nil: all arguments so far are valid
}

// require keeps an [*ArgError] if ok is false and there is no earlier error.
func (c *check) require(ok bool, what string, found any, wanted string) {
	if !ok && c.err == nil {
		c.err = &ArgError{c.String(), what, found, wanted}
	}
}

// address checks that addr is not 0 and a multiple of 16, for 16-byte loads.
func (c *check) address(what string, addr uint64) {
	if addr == 0 || addr%16 != 0 {
		c.require(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 16, not 0")
	}
}

// words checks the address of an array with one value a row, which may begin at any row of a step: not 0, and a multiple of 4.
func (c *check) words(what string, addr uint64) {
	if addr == 0 || addr%4 != 0 {
		c.require(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 4, not 0")
	}
}

// floats checks the address of rows of floats: a multiple of 16 if stride is a multiple of 4 values, else of 4.
func (c *check) floats(what string, addr uint64, stride uint32) {
	if stride%4 == 0 {
		c.address(what, addr)
	} else {
		c.words(what, addr)
	}
}

// table checks the address of a table of experts' addresses: not 0, and a multiple of 8 only, as the number of experts may be odd.
func (c *check) table(what string, addr uint64) {
	if addr == 0 || addr%8 != 0 {
		c.require(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 8, not 0")
	}
}

// stride checks that rows of cols values do not overlap.
func (c *check) stride(what string, stride, cols uint32) {
	if stride < cols {
		c.require(false, what, stride, fmt.Sprintf("at least the row's %d values", cols))
	}
}

// multiple checks that n is a multiple of of.
func (c *check) multiple(what string, n, of uint32) {
	if n%of != 0 {
		c.require(false, what, n, fmt.Sprintf("a multiple of %d", of))
	}
}

// atMost checks that n is at most most.
func (c *check) atMost(what string, n, most uint32) {
	if n > most {
		c.require(false, what, n, fmt.Sprintf("at most %d", most))
	}
}

// positive checks that n is not 0.
func (c *check) positive(what string, n uint32) {
	if n == 0 {
		c.require(false, what, n, "more than 0")
	}
}
