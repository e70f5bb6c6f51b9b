// Package probe is what each binding is put through, whichever it is: a kernel, timed calls, a crash test.
package probe
