package mem

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RAM returns the bytes of host memory in all, and those that a new allocation may
// take without swapping. A control group's limit counts as the machine's.
func RAM() (total, available int64, err error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("read host memory: %w", err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	if total == 0 {
		return 0, 0, fmt.Errorf("read host memory: /proc/meminfo has no MemTotal")
	}
	if limit, ok := cgroupValue("memory.max"); ok && limit < total {
		used, _ := cgroupValue("memory.current")
		total, available = limit, min(available, max(0, limit-used))
	}
	return total, available, nil
}

// cgroupValue reads a number of our control group (v2, as mounted in a container).
func cgroupValue(name string) (int64, bool) {
	b, err := os.ReadFile("/sys/fs/cgroup/" + name)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return v, err == nil
}
