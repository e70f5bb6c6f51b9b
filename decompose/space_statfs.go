//go:build linux || darwin || freebsd

package decompose

import "golang.org/x/sys/unix"

// freeBytes is what this user may still write where dir is.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
