package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readOS gives the distribution and the kernel.
func readOS() (name, kernel string) {
	name = "Linux"
	if f, err := os.Open("/etc/os-release"); err == nil {
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if value, ok := strings.CutPrefix(sc.Text(), "PRETTY_NAME="); ok {
				if name, err = strconv.Unquote(value); err != nil {
					name = value
				}
			}
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return name, "unknown"
	}
	text := func(b []byte) string { return unix.ByteSliceToString(b) }
	return name, text(u.Sysname[:]) + " " + text(u.Release[:]) + " " + text(u.Machine[:])
}

// deviceNodes lists what the drivers of Mesa, NVIDIA, and WSL open.
func deviceNodes() []nodeReport {
	nodes := []nodeReport{}
	for _, pattern := range []string{"/dev/dri/renderD*", "/dev/nvidiactl", "/dev/nvidia[0-9]*", "/dev/dxg"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			n := nodeReport{Path: p}
			if err := unix.Access(p, unix.R_OK|unix.W_OK); err != nil {
				n.Error = err.Error()
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}
