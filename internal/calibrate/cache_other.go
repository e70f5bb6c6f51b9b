//go:build !linux && !darwin

package calibrate

import "os"

func avoidCache(*os.File) {}

func probeCache(*os.File, int64) Cached { return CacheUnknown }
