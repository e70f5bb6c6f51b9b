//go:build linux || freebsd

package nvml

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Only development packages ship the name without a version.
var libraryNames = []string{"libnvidia-ml.so.1", "libnvidia-ml.so"}

func openLibrary(name string) (uintptr, error) {
	runtime.LockOSThread() // dlerror, which tells why it failed, is of the thread that called
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(lib uintptr, name string) (uintptr, error) {
	runtime.LockOSThread() // as above
	defer runtime.UnlockOSThread()
	return purego.Dlsym(lib, name)
}
