package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is what an allocation is aligned to, so that the kernel may back it with
// pages of this size: pinning them is then 512 times less work.
const hugePage = 2 << 20

// Anonymous returns bytes of memory that is nobody's file, not even the garbage collector's, and what gives it back.
func Anonymous(bytes int64) ([]byte, func(), error) {
	m, err := unix.Mmap(-1, 0, int(bytes+hugePage), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	skip := -uintptr(unsafe.Pointer(&m[0])) & (hugePage - 1)
	part := m[skip : skip+uintptr(bytes) : skip+uintptr(bytes)]
	_ = unix.Madvise(part, unix.MADV_HUGEPAGE) // a wish
	return part, func() { _ = unix.Munmap(m) }, nil
}
