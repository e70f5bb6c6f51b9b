//go:build !linux

package pack

import "os"

// dropCache does nothing: there is no such wish here that a plain file takes.
func dropCache(*os.File) {}
