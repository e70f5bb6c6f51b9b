//go:build !linux

package pack

import "os"

// DropCache does nothing: there is no such wish here that a plain file takes.
func DropCache(*os.File) {}
