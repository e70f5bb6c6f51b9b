package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestQuota(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no cgroups":    {nil, 0},
		"no limit":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0},
		"a container":   {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5},
		"the parent's":  {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 2},
		"the least":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n"}, 0.5},
		"version 1":     {map[string]string{"proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n"}, 3},
		"version 1, no": {map[string]string{"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		"nonsense":      {map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/cpu.max": "a b c\n"}, 0},
	} {
		root := t.TempDir()
		for path, text := range tt.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := quotaUnder(root); got != tt.want {
			t.Errorf("%s: %g cores, want %g", name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		allowed int
		quota   float64
		want    int
	}{{8, 0, 8}, {8, 2.5, 3}, {2, 4, 2}, {8, 0.1, 1}} {
		if got := usableCores(tt.allowed, tt.quota); got != tt.want {
			t.Errorf("%d allowed, a quota of %g: %d, want %d", tt.allowed, tt.quota, got, tt.want)
		}
	}
}
