//go:build linux || freebsd

package nvml

import "leat/vk/dl"

// Only development packages ship the name without a version.
var libraryNames = []string{"libnvidia-ml.so.1", "libnvidia-ml.so"}

func openLibrary(name string) (uintptr, error) { return dl.Open(name) }
