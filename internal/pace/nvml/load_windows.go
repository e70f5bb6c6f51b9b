package nvml

import "golang.org/x/sys/windows"

var libraryNames = []string{"nvml.dll"}

// openLibrary looks in the system's folder only, where the driver puts it.
func openLibrary(name string) (uintptr, error) {
	lib, err := windows.LoadLibraryEx(name, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(lib), err
}
