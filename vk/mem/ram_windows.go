package mem

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatusEx is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatusEx struct {
	length, load                                                               uint32
	totalPhys, availPhys, totalPage, availPage, totalVirt, availVirt, availExt uint64
}

// RAM returns the bytes of host memory in all, and those that a new allocation may take.
func RAM() (total, available int64, err error) {
	var s memoryStatusEx
	s.length = uint32(unsafe.Sizeof(s))
	// BOOL GlobalMemoryStatusEx(LPMEMORYSTATUSEX)
	ok, _, callErr := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&s)))
	if ok == 0 {
		return 0, 0, fmt.Errorf("read host memory: GlobalMemoryStatusEx: %w", callErr)
	}
	return int64(s.totalPhys), int64(s.availPhys), nil
}
