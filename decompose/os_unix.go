//go:build unix

package decompose

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const renamesOpen = true // a folder with open files in it can be renamed

// sameDrive reports whether two folders are on one file system, as far as can be told.
func sameDrive(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}

// DiskFull reports whether err says that there is no room, or that this user may take no more.
func DiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// syncDir makes renames in dir last. Some file systems have no such call: then there is nothing to do.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
