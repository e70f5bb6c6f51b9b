package output

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock tries to lock f without waiting, and reports whether it got the lock. The lock lasts until f is closed or the process ends. It locks one byte far
// after the content, as Windows locks are mandatory.
func TryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
