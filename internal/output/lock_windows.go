package output

import (
	"os"

	"golang.org/x/sys/windows"
)

func tryLock(f *os.File) bool {
	const all = ^uint32(0)
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, all, all, new(windows.Overlapped)) == nil
}
