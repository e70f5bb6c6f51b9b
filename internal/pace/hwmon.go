package pace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// hwmon reads a GPU's sensors from Linux's sysfs: amdgpu, and what other drivers show
// there.
type hwmon struct {
	fsys  fs.FS   // /sys
	name  string  // the driver's
	temp  string  // file of the temperature
	slow  float64 // °C at which the device slows itself; 0: not known
	power string  // file of the power; "": none
	clock string  // file of the clock; "": none
}

// newHwmon finds the sensor of the device at a PCI address; nil: there is none.
func newHwmon(fsys fs.FS, pci string) *hwmon {
	dirs, err := fs.Glob(fsys, path.Join("bus/pci/devices", pci, "hwmon/hwmon*"))
	if err != nil {
		return nil
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		h := &hwmon{fsys: fsys}
		if h.name = h.text(path.Join(dir, "name")); h.name == "" {
			h.name = "hwmon"
		}
		if h.pickTemp(dir); h.temp == "" {
			continue
		}
		h.power = h.readable(path.Join(dir, "power1_average"), path.Join(dir, "power1_input"))
		h.clock = h.readable(path.Join(dir, "freq1_input"))
		return h
	}
	return nil
}

// pickTemp chooses the hottest spot of the die, by which amdgpu throttles, else the first
// that is not the memory's.
func (h *hwmon) pickTemp(dir string) {
	for _, n := range []string{"1", "2", "3"} {
		base := path.Join(dir, "temp"+n)
		label := h.text(base + "_label")
		_, err := h.number(base + "_input")
		if err != nil || label == "mem" || label == "vram" || h.temp != "" && label != "junction" {
			continue
		}
		h.temp, h.slow = base+"_input", 0
		if crit, err := h.number(base + "_crit"); err == nil {
			h.slow = crit / 1000
		}
	}
}

// readable is the first of the files that holds a number; "": none does.
func (h *hwmon) readable(files ...string) string {
	for _, f := range files {
		if _, err := h.number(f); err == nil {
			return f
		}
	}
	return ""
}

// text is a file's text without space around it; "" where it can't be read.
func (h *hwmon) text(file string) string {
	b, err := fs.ReadFile(h.fsys, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a file that holds a whole number.
func (h *hwmon) number(file string) (float64, error) {
	b, err := fs.ReadFile(h.fsys, file)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, errors.Unwrap(err))
	}
	return float64(v), nil
}

func (h *hwmon) Name() string       { return h.name }
func (h *hwmon) SlowdownC() float64 { return h.slow }
func (h *hwmon) Close() error       { return nil }

// Read converts from milli-°C, µW and Hz.
func (h *hwmon) Read() (r Reading, err error) {
	temp, err := h.number(h.temp)
	if err != nil {
		return Reading{}, err
	}
	r.TempC = temp / 1000
	if h.power != "" {
		if w, err := h.number(h.power); err == nil {
			r.PowerW = w / 1e6
		}
	}
	if h.clock != "" {
		if hz, err := h.number(h.clock); err == nil {
			r.ClockMHz = int(hz / 1e6)
		}
	}
	return r, nil
}

// sysfs is where Linux shows its devices.
func sysfs() fs.FS { return os.DirFS("/sys") }
