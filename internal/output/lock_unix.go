//go:build unix

package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock tries to lock f without waiting, and reports whether it got the lock. The lock lasts until f is closed or the process ends.
func TryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}
