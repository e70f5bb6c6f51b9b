//go:build unix

package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks f until it is closed or the process ends, and reports whether no other process holds it.
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
