package mem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RAM returns the bytes of host memory in all, and those that a new allocation may
// take: free pages and those the system gives up readily.
func RAM() (total, available int64, err error) {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0, fmt.Errorf("read host memory: hw.memsize: %w", err)
	}
	total = int64(size)
	for _, name := range []string{"vm.page_free_count", "vm.page_purgeable_count"} {
		if n, err := unix.SysctlUint32(name); err == nil {
			available += int64(n) * int64(unix.Getpagesize())
		}
	}
	return total, max(available, total/4), nil
}
