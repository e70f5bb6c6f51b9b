package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leat/vk"
)

func TestDevicesPrint(t *testing.T) {
	report := devicesReport{
		Devices: []deviceReport{{
			Index: 1, Name: "Some GPU", Type: "discrete", Default: true, UUID: "00000000-0100-0000-0000-000000000000",
			Driver: "somedrv", DriverInfo: "1.2.3", API: "1.4.312",
			Heaps:        []heapReport{{Bytes: 8 << 30, BudgetBytes: 7 << 30, DeviceLocal: true}, {Bytes: 16 << 30, BudgetBytes: 15 << 30}},
			Queues:       []queueReport{{Count: 16, Graphics: true, Compute: true, Transfer: true, TimestampBits: 64}, {Count: 2, Transfer: true}},
			SubgroupSize: 32, SubgroupMin: 32, SubgroupMax: 64,
			Features: map[string]bool{
				"buffer_device_address": true, "timeline_semaphore": true, "float16": true, "int8": true, "int_dot_product": true,
				"transfer_queue": true,
			},
		}},
		CPU: cpuReport{Name: "Some CPU", Cores: 4, MachineCores: 8, MachineThreads: 16, SIMD: []string{"AVX2", "AMX-INT8"}, RAMBytes: 64 << 30, AvailableBytes: 60 << 30},
	}
	want := `1    Some GPU (discrete, default)
     driver    somedrv 1.2.3, Vulkan 1.4.312
     UUID      00000000-0100-0000-0000-000000000000
     VRAM      8.0 GiB, budget 7.0 GiB
     host heap 16.0 GiB, budget 15.0 GiB
     queues 0  16 x graphics, compute, transfer, 64-bit timestamps
     queues 1  2 x transfer, 0-bit timestamps
     subgroup  32 (32 to 64)
     has       buffer addresses, timelines, fp16, int8, int8 dot product,
               dedicated transfer queue
     lacks     8-bit storage, 16-bit storage, int64, subgroup size control,
               conditional dispatches, cooperative matrix, host memory import,
               memory budget, memory priority, pageable VRAM, resizable BAR,
               one memory with the CPU

CPU  Some CPU
     cores     4 for this process, of 8 with 16 threads
     SIMD      AVX2, AMX-INT8
     RAM       64.0 GiB, 60.0 GiB available
`
	var out bytes.Buffer
	report.print(&out)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
}

// On this machine: both forms agree, or say what to install.
func TestDevices(t *testing.T) {
	instance, err := vk.Open(vk.InstanceOptions{})
	if err == nil {
		instance.Close()
	} else if os.Getenv("LEAT_REQUIRE_DEVICE") == "1" || !errors.Is(err, vk.ErrNoDriver) {
		t.Fatal(err)
	}
	noDriver := err != nil

	stdout, stderr, code := leat(t, "devices", "--json")
	var report devicesReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if report.CPU.RAMBytes <= 0 || report.CPU.AvailableBytes <= 0 || report.CPU.AvailableBytes > report.CPU.RAMBytes {
		t.Errorf("RAM %d, available %d", report.CPU.RAMBytes, report.CPU.AvailableBytes)
	}
	if noDriver {
		if code != exitFailure || !strings.Contains(stderr, "leat: hint: ") {
			t.Errorf("no driver: exit %d, stderr %q", code, stderr)
		}
		t.Skipf("no device to look at: %v", err)
	}
	if code != exitOK || stderr != "" || len(report.Devices) == 0 {
		t.Fatalf("exit %d, stderr %q, %d devices", code, stderr, len(report.Devices))
	}
	text, _, _ := leat(t, "devices")
	defaults := 0
	for _, d := range report.Devices {
		if !strings.Contains(text, d.Name) || d.UUID == "" || len(d.Heaps) == 0 || len(d.Queues) == 0 || d.SubgroupSize == 0 {
			t.Errorf("incomplete: %+v in\n%s", d, text)
		}
		if d.Default {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("%d default devices, want 1", defaults)
	}
}
