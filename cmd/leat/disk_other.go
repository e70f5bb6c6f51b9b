//go:build !linux && !darwin

package main

import "os"

func avoidCache(*os.File) {}

func probeCache(*os.File, int64) cached { return cacheUnknown }
