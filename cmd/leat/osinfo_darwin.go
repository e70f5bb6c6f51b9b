package main

import "golang.org/x/sys/unix"

// readOS gives the system's version and the kernel's.
func readOS() (name, kernel string) {
	read := func(key string) string {
		s, err := unix.Sysctl(key)
		if err != nil {
			return "unknown"
		}
		return s
	}
	return "macOS " + read("kern.osproductversion"), "Darwin " + read("kern.osrelease")
}

func deviceNodes() []nodeReport { return []nodeReport{} }
