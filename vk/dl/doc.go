// Package dl opens libraries of C while the program runs, without cgo.
package dl
