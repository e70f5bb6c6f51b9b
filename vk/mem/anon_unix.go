//go:build unix && !linux

package mem

import "golang.org/x/sys/unix"

// Anonymous returns bytes of memory that is nobody's file, not even the garbage collector's, and what gives it back.
func Anonymous(bytes int64) ([]byte, func(), error) {
	m, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	return m, func() { _ = unix.Munmap(m) }, nil
}
