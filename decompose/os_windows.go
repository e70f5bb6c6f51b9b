package decompose

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

const renamesOpen = false // a folder with open files in it can't be renamed

// sameDrive reports whether two folders are on one volume, as far as can be told.
func sameDrive(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && strings.EqualFold(filepath.VolumeName(x), filepath.VolumeName(y))
}

// DiskFull reports whether err says that there is no room, or that this user may take no more.
func DiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// syncDir does nothing: NTFS journals renames by itself.
func syncDir(string) error { return nil }

// freeBytes is what this user may still write where dir is.
func freeBytes(dir string) (int64, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(free, 1<<62)), nil
}
