//go:build unix

package calibrate

import (
	"io/fs"
	"syscall"
)

// deviceNumber is the number of the file system a file is on.
func deviceNumber(info fs.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Dev), true // its type differs between systems
}
