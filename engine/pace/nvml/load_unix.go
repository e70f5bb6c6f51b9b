//go:build linux || freebsd

package nvml

import "github.com/ebitengine/purego"

// Only development packages ship the name without a version.
var libraryNames = []string{"libnvidia-ml.so.1", "libnvidia-ml.so"}

func openLibrary(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }
