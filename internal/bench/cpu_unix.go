//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what all threads of this process have used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
