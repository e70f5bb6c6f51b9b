//go:build !windows

package dl

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Open loads a library by its path, or by its name from where the system looks. The error says why it can't be.
func Open(name string) (uintptr, error) {
	runtime.LockOSThread() // dlerror, which tells why it failed, is of the thread that called
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Symbol is the address of what a library calls name.
func Symbol(lib uintptr, name string) (uintptr, error) {
	runtime.LockOSThread() // as above
	defer runtime.UnlockOSThread()
	return purego.Dlsym(lib, name)
}

// Close gives a library back.
func Close(lib uintptr) error { return purego.Dlclose(lib) }
