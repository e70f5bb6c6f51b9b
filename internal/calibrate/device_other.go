//go:build !unix

package calibrate

import "io/fs"

func deviceNumber(fs.FileInfo) (uint64, bool) { return 0, false }
