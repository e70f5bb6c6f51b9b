package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leat/internal/calibrate"
	"leat/internal/selftest"
	"leat/vk"
	"leat/vk/vktest"
)

// testDoctor is an examination that prints into out.
func testDoctor(out *bytes.Buffer) *doctor {
	return newDoctor(&app{out: out, err: out, log: newLogger(out, false)}, &doctorFlags{}, out, nil)
}

// On this machine: every kernel, both ways to print, and what is measured is finite.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("every kernel, one after the other: nothing runs beside it")
	}
	vktest.Instance(t)
	stdout, stderr, code := leat(t, "doctor", "--quick", "--json", "--disk", t.TempDir())
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	var r doctorReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if !r.Works || r.Loader == nil || r.Device == nil || len(r.Devices) == 0 || r.System.Kernel == "" || r.Program.Go != runtime.Version() {
		t.Errorf("incomplete: %s", stdout)
	}
	if c := r.Cache; c == nil || c.Path == "" || len(c.Failed) != 0 || (c.Tuned > 0) != (c.TunedAt != nil) {
		t.Errorf("kept of the device: %+v", c)
	}
	if r.Verdict == "" || strings.Contains(r.Verdict, "can't") {
		t.Errorf("the verdict is %q", r.Verdict)
	}
	kernels := map[string]bool{}
	for _, c := range selftest.Quick() {
		kernels[c.Kernel] = true
	}
	if r.Devices[*r.Device].Type == vk.CPU.String() {
		clear(kernels)
		for _, c := range selftest.Sample() {
			kernels[c.Kernel] = true
		}
	}
	if got := len(r.Kernels); got < len(kernels)*3/4 || got > len(kernels) { // some are not for this device
		t.Errorf("%d kernels tested, want most of %d", got, len(kernels))
	}
	for _, k := range r.Kernels {
		if !k.Pass || k.Cases == 0 || k.Error != "" {
			t.Errorf("kernel %+v", k)
		}
	}
	seen := map[string]bool{}
	for _, s := range r.Speeds {
		seen[s.Name] = true
		if !(s.BytesPerSec > 0) || math.IsInf(s.BytesPerSec, 0) || s.Verdict == "" || s.Matters == "" || s.Bytes <= 0 {
			t.Errorf("speed %+v", s)
		}
	}
	for _, name := range []string{"upload", "VRAM", "disk"} {
		if !seen[name] {
			t.Errorf("no speed of %s", name)
		}
	}
}

func TestDoctorKernels(t *testing.T) {
	cases := []selftest.Case{{Kernel: "add", Shape: "a"}, {Kernel: "add", Shape: "b"}, {Kernel: "rope", Shape: "a"}, {Kernel: "swiglu", Shape: "a"}}
	variant := selftest.Case{Kernel: "rope_kv_f16", Shape: "a"}
	lost := &vk.CallError{Call: "vkQueueSubmit", Result: vk.ErrDeviceLost}
	tests := map[string]struct {
		fails   map[string]error
		want    string // results in order
		failure string // part of the error; "": none
		hint    string
	}{
		"all pass":       {nil, "add PASS, rope PASS, swiglu PASS", "", ""},
		"one is wrong":   {map[string]error{"rope/a": errors.New("NMSE is 1")}, "add PASS, rope FAIL, swiglu PASS", "1 of 3 kernels fail", "update the driver"},
		"second case":    {map[string]error{"add/b": errors.New("NMSE is 1")}, "add FAIL, rope PASS, swiglu PASS", "1 of 3 kernels fail", "report it"},
		"one is spared":  {map[string]error{"rope_kv_f16/a": errors.New("NMSE is 1")}, "add PASS, rope PASS, swiglu PASS, rope_kv_f16 FAIL", "", ""},
		"device is lost": {map[string]error{"rope/a": lost}, "add PASS, rope FAIL", "kernel rope: vkQueueSubmit: VK_ERROR_DEVICE_LOST", "the driver gave the device up"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			d := testDoctor(&out)
			d.device.chosen = &vk.PhysicalDevice{Name: "Some GPU"}
			cases := cases
			if tt.fails[variant.String()] != nil {
				cases = append(slices.Clip(cases), variant)
			}
			d.tests.testKernels(t.Context(), cases, func(_ context.Context, c *selftest.Case) (selftest.Result, error) {
				return selftest.Result{Case: c}, tt.fails[c.String()]
			})
			var got []string
			for _, k := range d.tests.reports {
				got = append(got, k.Name+map[bool]string{true: " PASS", false: " FAIL"}[k.Pass])
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("found %v, want %s", got, tt.want)
			}
			if (d.found.failure != nil) != (tt.failure != "") || d.found.failure != nil && !strings.Contains(d.found.failure.Error(), tt.failure) {
				t.Fatalf("failure %v, want %q", d.found.failure, tt.failure)
			}
			if d.found.failure != nil && !strings.Contains(d.found.problems[0].Hint, tt.hint) {
				t.Errorf("hint %q, want one with %q", d.found.problems[0].Hint, tt.hint)
			}
			if spared := tt.fails[variant.String()] != nil; spared != (len(d.found.problems) > 0 && !d.found.problems[0].Fatal) {
				t.Errorf("problems %+v", d.found.problems)
			}
			for _, err := range tt.fails {
				if !strings.Contains(out.String(), err.Error()) {
					t.Errorf("does not print %q:\n%s", err, &out)
				}
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want string
	}{{20e9, "good"}, {19.9e9, "fair"}, {10e9, "fair"}, {9.9e9, "slow"}, {0, "slow"}} {
		if got := verdict(c.rate, 20, 10); got != c.want {
			t.Errorf("verdict(%g) = %q, want %q", c.rate, got, c.want)
		}
	}
	for _, c := range []struct {
		state calibrate.Cached
		want  string
	}{{calibrate.CacheCold, "good"}, {calibrate.CacheUnknown, "good, unless it was cached"}, {calibrate.CacheWarm, "cached, so this is no disk's speed"}} {
		if got := diskVerdict(4e9, c.state); got != c.want {
			t.Errorf("diskVerdict of state %d = %q, want %q", c.state, got, c.want)
		}
	}
	for rate, want := range map[float64]string{50e9: "1 GB in 20 ms", 1e9: "1 GB in 1e+03 ms", 2e8: "1 GB in 5.0 s", 3.2e12: "1 GB in 0.312 ms"} {
		if got := gigabyte(rate); got != want {
			t.Errorf("gigabyte(%g) = %q, want %q", rate, got, want)
		}
	}
}

func TestReadDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := readDisk(t.Context(), dir, 2*calibrate.DiskBlock)
	if err != nil || s.BytesPerSec <= 0 || s.Bytes != 2*calibrate.DiskBlock {
		t.Errorf("a folder: %+v, %v", s, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
	file := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(file, make([]byte, calibrate.DiskBlock+5), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err = readDisk(t.Context(), file, 256<<20)
	if err != nil || s.Bytes != calibrate.DiskBlock {
		t.Errorf("a file: %+v, %v", s, err)
	}
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := readDisk(t.Context(), file, 256<<20); err == nil || !strings.Contains(err.Error(), "too small to measure") {
		t.Errorf("a small file: %v", err)
	}
	if _, err := readDisk(t.Context(), filepath.Join(dir, "nowhere"), calibrate.DiskBlock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nowhere: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readDisk(canceled, dir, 2*calibrate.DiskBlock); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left, want the model alone", len(left))
	}
}

func TestDriverManifests(t *testing.T) {
	root := t.TempDir()
	file := func(parts ...string) string {
		path := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	conf := file("home", ".config", "vulkan", "icd.d", "conf.json")
	data := file("share", "vulkan", "icd.d", "data.json")
	file("share", "vulkan", "icd.d", "readme.txt")
	other := file("other", "other.json")
	list := string(filepath.ListSeparator)
	base := map[string]string{"XDG_DATA_DIRS": filepath.Join(root, "share") + list + filepath.Join(root, "nowhere"), "XDG_DATA_HOME": root, "XDG_CONFIG_DIRS": root}
	for name, tt := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"the usual places":   {nil, []string{conf, data}},
		"one by name":        {map[string]string{"VK_DRIVER_FILES": other}, []string{other}},
		"the old name":       {map[string]string{"VK_ICD_FILENAMES": other + list + data}, []string{other, data}},
		"the new name wins":  {map[string]string{"VK_DRIVER_FILES": data, "VK_ICD_FILENAMES": other}, []string{data}},
		"a folder":           {map[string]string{"VK_DRIVER_FILES": filepath.Dir(other)}, []string{other}},
		"none":               {map[string]string{"VK_DRIVER_FILES": ""}, nil},
		"one more":           {map[string]string{"VK_ADD_DRIVER_FILES": other}, []string{other, conf, data}},
		"one that is absent": {map[string]string{"VK_DRIVER_FILES": "/nowhere/x.json"}, []string{"/nowhere/x.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			lookup := func(key string) (string, bool) {
				if v, ok := tt.env[key]; ok {
					return v, true
				}
				v, ok := base[key]
				return v, ok
			}
			var got []string
			for _, f := range driverManifests(lookup, filepath.Join(root, "home")) {
				if strings.HasPrefix(f, root) || strings.HasPrefix(f, "/nowhere") { // this machine's own aside
					got = append(got, f)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadDriver(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ manifest, library, err string }{
		"absolute": {`{"ICD": {"library_path": "/nowhere/libdriver.so", "api_version": "1.3.1"}}`, "/nowhere/libdriver.so", "/nowhere/libdriver.so"},
		"relative": {`{"ICD": {"library_path": "./lib/libdriver.so", "api_version": "1.3.1"}}`, filepath.Join(dir, "lib", "libdriver.so"), "libdriver.so"},
		"by name":  {`{"ICD": {"library_path": "libdriver-absent.so", "api_version": "1.3.1"}}`, "libdriver-absent.so", "libdriver-absent.so"},
		"not JSON": {`ICD: x`, "", "not a driver's manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "driver.json")
			if err := os.WriteFile(path, []byte(tt.manifest), 0o644); err != nil {
				t.Fatal(err)
			}
			r := readDriver(path)
			if r.Library != tt.library || !strings.Contains(r.Error, tt.err) || r.Error == "" {
				t.Errorf("found %+v, want library %q and an error with %q", r, tt.library, tt.err)
			}
		})
	}
	if r := readDriver(filepath.Join(dir, "nowhere.json")); r.Error == "" {
		t.Error("a manifest that is not there has no error")
	}
}

// A bug report shows what steers Vulkan, and nothing else of the environment.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	got := environment([]string{"VK_LAYER_PATH=/home/someone/layers", "API_TOKEN=secret", "HOME=/home/someone", "RADV_DEBUG=hang", "LEAT_VULKAN_LIBRARY=x", "LEAT_KEY=secret"})
	want := []string{"LEAT_VULKAN_LIBRARY=x", "RADV_DEBUG=hang", "VK_LAYER_PATH=~/layers"}
	if runtime.GOOS == "windows" {
		want[2] = "VK_LAYER_PATH=/home/someone/layers"
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
