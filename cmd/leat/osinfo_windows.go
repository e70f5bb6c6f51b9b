package main

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// readOS gives the kernel's version; the name of a Windows says less than its build.
func readOS() (name, kernel string) {
	v := windows.RtlGetVersion()
	return "Windows", fmt.Sprintf("NT %d.%d build %d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

func deviceNodes() []nodeReport { return []nodeReport{} }
