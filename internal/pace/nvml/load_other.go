//go:build !linux && !freebsd && !windows

package nvml

import "errors"

var libraryNames []string

var errNoDriver = errors.New("NVIDIA has no driver for this system")

func openLibrary(string) (uintptr, error) { return 0, errNoDriver }
