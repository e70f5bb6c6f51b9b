package pack

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropCache asks the kernel to forget what it holds of f in memory, so that a check reads the disk.
// It is a wish: dirty pages stay.
func DropCache(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
