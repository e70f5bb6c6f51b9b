package mem

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Anonymous returns bytes of memory that is nobody's file, not even the garbage collector's, and what gives it back.
func Anonymous(bytes int64) ([]byte, func(), error) {
	// LPVOID VirtualAlloc(LPVOID, SIZE_T, DWORD, DWORD)
	p, err := windows.VirtualAlloc(0, uintptr(bytes), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, nil, err
	}
	m := unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), bytes)
	return m, func() { _ = windows.VirtualFree(p, 0, windows.MEM_RELEASE) }, nil
}
