package main

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// quota is how many cores' time the cgroups of this process grant it; 0: no limit.
func quota() float64 { return quotaUnder("/") }

// quotaUnder looks at the system whose root is there.
func quotaUnder(root string) (least float64) {
	data, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) // no cgroups: no limit
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		read := quotaV2
		mount := "sys/fs/cgroup"
		switch {
		case controllers == "":
		case strings.Contains(","+controllers+",", ",cpu,"):
			read, mount = quotaV1, "sys/fs/cgroup/cpu"
		default:
			continue
		}
		for { // a group has no more than those it is in
			if q := read(filepath.Join(root, mount, group)); q > 0 && (least == 0 || q < least) {
				least = q
			}
			if group == "/" || group == "." || group == "" {
				break
			}
			group = path.Dir(group)
		}
	}
	return least
}

func quotaV2(dir string) float64 {
	data, _ := os.ReadFile(filepath.Join(dir, "cpu.max"))
	limit, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return ratio(limit, period)
}

func quotaV1(dir string) float64 {
	limit, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	return ratio(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
}

// ratio is 0 for "max", -1 and what is no number.
func ratio(limit, period string) float64 {
	a, errA := strconv.ParseFloat(limit, 64)
	b, errB := strconv.ParseFloat(period, 64)
	if errA != nil || errB != nil || !(a > 0) || !(b > 0) {
		return 0
	}
	return a / b
}
