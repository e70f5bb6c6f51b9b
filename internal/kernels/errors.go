package kernels

import "fmt"

// ArgError says which argument of an op cannot be run.
type ArgError struct {
	Op     string // "mul_mat q4_k"
	What   string // "K"
	Found  any
	Wanted string // "a multiple of 256"
}

func (e *ArgError) Error() string {
	return fmt.Sprintf("record %s: %s is %v, want %s", e.Op, e.What, e.Found, e.Wanted)
}

// BrokenError says that a variant of a kernel computes wrong on a device, so it is not used.
type BrokenError struct {
	Kernel, Device string
	Why            string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("test kernel %s on %s: %s", e.Kernel, e.Device, e.Why)
}

// Hint says that nothing needs to be done.
func (e *BrokenError) Hint() string {
	return "another kernel is used in its place, slower; update the driver, and see leat doctor"
}

// CrashError says that the driver crashed in a kernel in an earlier run, so it is not compiled again.
type CrashError struct {
	Kernel, Device string
	Why            string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("build kernel %s on %s: %s", e.Kernel, e.Device, e.Why)
}

// Hint names what tries the kernel again.
func (e *CrashError) Hint() string {
	return "update the driver, or choose another device with --device; leat doctor --retry tries the kernel again"
}

// check keeps the first wrong argument of an op.
type check struct {
	choice
	err error
}

func (c *check) that(ok bool, what string, found any, wanted string) {
	if !ok && c.err == nil {
		c.err = &ArgError{c.String(), what, found, wanted}
	}
}

// address demands what 16-byte loads can use.
func (c *check) address(what string, addr uint64) {
	if addr == 0 || addr%16 != 0 {
		c.that(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 16, not 0")
	}
}

// words demands what loads of 4 bytes can use: of an array with one value for each row, whose rows may be some of a step's.
func (c *check) words(what string, addr uint64) {
	if addr == 0 || addr%4 != 0 {
		c.that(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 4, not 0")
	}
}

// floats demands 16-byte loads of rows of floats where their stride allows them.
func (c *check) floats(what string, addr uint64, stride uint32) {
	if stride%4 == 0 {
		c.address(what, addr)
	} else {
		c.words(what, addr)
	}
}

// table demands what a table of addresses can be read at: experts may be odd in number.
func (c *check) table(what string, addr uint64) {
	if addr == 0 || addr%8 != 0 {
		c.that(false, what, fmt.Sprintf("address %#x", addr), "a multiple of 8, not 0")
	}
}

func (c *check) stride(what string, stride, cols uint32) {
	if stride < cols {
		c.that(false, what, stride, fmt.Sprintf("at least the row's %d values", cols))
	}
}

func (c *check) multiple(what string, n, of uint32) {
	if n%of != 0 {
		c.that(false, what, n, fmt.Sprintf("a multiple of %d", of))
	}
}

func (c *check) most(what string, n, most uint32) {
	if n > most {
		c.that(false, what, n, fmt.Sprintf("at most %d", most))
	}
}

func (c *check) positive(what string, n uint32) {
	if n == 0 {
		c.that(false, what, n, "more than 0")
	}
}
