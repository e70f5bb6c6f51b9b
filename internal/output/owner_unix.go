//go:build unix

package output

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file that it replaces, if this user may: root may, and other users mostly own the file already.
func keepOwner(f *os.File, old fs.FileInfo) {
	if s, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(s.Uid), int(s.Gid))
	}
}
