package dl

import "syscall"

// Open loads a library by its path, or by its name from where the system looks. The error says why it can't be.
func Open(name string) (uintptr, error) {
	lib, err := syscall.LoadLibrary(name)
	return uintptr(lib), err
}

// Symbol is the address of what a library calls name.
func Symbol(lib uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(lib), name)
}

// Close gives a library back.
func Close(lib uintptr) error { return syscall.FreeLibrary(syscall.Handle(lib)) }
