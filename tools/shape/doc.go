// Package shape holds how large a type, a function and a file may be.
//
// It has no code of its own: its test reads the source of the whole project.
package shape
