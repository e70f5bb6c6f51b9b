//go:build !linux && !darwin && !windows

package main

import "runtime"

func readOS() (name, kernel string) { return runtime.GOOS, "unknown" }

func deviceNodes() []nodeReport { return []nodeReport{} }
