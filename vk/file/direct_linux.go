package file

import (
	"os"

	"golang.org/x/sys/unix"
)

func openDirect(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
}

// forget keeps what is read once from pushing out what others have in the page cache.
func forget(f *os.File, off, n int64) {
	_ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED)
}
