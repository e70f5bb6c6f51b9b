//go:build unix

package cache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks f until it is closed or the process ends, and reports whether nobody else holds it.
func tryLock(f *os.File) (bool, error) {
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
