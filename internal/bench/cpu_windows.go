package bench

import (
	"time"

	"golang.org/x/sys/windows"
)

// cpuTime is what all threads of this process have used.
func cpuTime() time.Duration {
	var begun, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &begun, &ended, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
