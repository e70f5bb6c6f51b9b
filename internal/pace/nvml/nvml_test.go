package nvml

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leat/vk/dl/dltest"
)

// fakeLibrary is testdata/fake.c, so that the binding is tried against C.
func fakeLibrary(t *testing.T) string {
	t.Helper()
	return dltest.Build(t, filepath.Join("testdata", "fake.c"))
}

func TestDevice(t *testing.T) {
	lib := fakeLibrary(t)
	const pci, uuid = "0000:65:00.0", "0A1B2C3D-0000-0000-0000-000000000001"
	for _, tt := range []struct{ name, pci, uuid, err string }{
		{"by address", pci, "", ""},
		{"by UUID", "", uuid, ""},
		{"another address, the UUID", "0000:01:00.0", uuid, ""},
		{"another device", "0000:01:00.0", "", "nvmlDeviceGetHandleByPciBusId_v2 of 0000:01:00.0: Not Found (6)"},
		{"nothing to find it by", "", "", "neither"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := open([]string{"libabsent.so.9", lib})
			if err != nil {
				t.Fatal(err)
			}
			d, err := l.Device(tt.pci, tt.uuid)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, wanted %q", err, tt.err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if temp, err := d.TempC(); temp != 71 || err != nil {
				t.Errorf("temperature %g, %v", temp, err)
			}
			if d.SlowdownC() != 88 || d.PowerW() != 212.5 || d.ClockMHz() != 1755 || !d.SlowedByHeat() {
				t.Errorf("slowdown %g, power %g, clock %d, slowed %t", d.SlowdownC(), d.PowerW(), d.ClockMHz(), d.SlowedByHeat())
			}
			for range 2 {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := open([]string{"libabsent.so.9"}); !errors.Is(err, ErrNone) {
		t.Errorf("no library: %v", err)
	}
	if runtime.GOOS == "linux" {
		if _, err := open([]string{"libc.so.6"}); err == nil || !strings.Contains(err.Error(), "nvmlInit_v2") {
			t.Errorf("another library: %v", err)
		}
	}
}
