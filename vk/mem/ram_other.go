//go:build !linux && !darwin && !windows

package mem

import (
	"fmt"
	"runtime"
)

// RAM returns the bytes of host memory in all, and those that a new allocation may take.
func RAM() (total, available int64, err error) {
	return 0, 0, fmt.Errorf("read host memory: not known how on %s", runtime.GOOS)
}
