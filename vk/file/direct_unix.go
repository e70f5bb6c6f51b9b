//go:build unix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func pread(f *os.File, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), p, off)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// isRefusal tells a direct read that may never work from one that failed: the file
// system wants other blocks (EINVAL), or the memory is a driver's own mapping (EFAULT).
func isRefusal(err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EFAULT) }
