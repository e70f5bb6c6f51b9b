package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

const crashKernel = "LEAT_TEST_CRASH_KERNEL" // in which the process of TestDoctorCrashes dies

// crashIn is a process that dies as the driver compiles a kernel.
func crashIn(kernel string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	instance, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		fail(err)
	}
	p, err := instance.Pick("")
	if err != nil {
		fail(err)
	}
	dev, err := instance.NewDevice(p, vk.DeviceOptions{})
	if err != nil {
		fail(err)
	}
	k, err := kernels.New(dev, kernels.Options{Cache: newApp(nil, nil, nil).cacheFolder(), Alter: func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
		if row.Name == kernel {
			os.Exit(3)
		}
		return row.SPIRV, spec
	}})
	if err != nil {
		fail(err)
	}
	runner, err := selftest.New(dev, k, 1)
	if err != nil {
		fail(err)
	}
	for _, c := range selftest.Quick() {
		if c.Kernel == kernel {
			runner.Run(context.Background(), &c)
		}
	}
	fail(fmt.Errorf("%s was not compiled", kernel))
}

// Doctor does not try a kernel that ended two runs, and names it; with --retry it does.
func TestDoctorCrashes(t *testing.T) {
	vktest.Instance(t)
	const kernel, other = "rms_norm_q8", "swiglu"
	t.Setenv("MESA_SHADER_CACHE_DIR", strings.TrimPrefix(mesaCache, "MESA_SHADER_CACHE_DIR="))
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	crash := func() {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashKernel+"="+kernel)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("%v: %s", err, out)
		}
		folder := newApp(nil, nil, nil).cacheFolder() // the run that finds the marker
		k, err := kernels.New(vktest.Open(t), kernels.Options{Cache: folder})
		if err != nil {
			t.Fatal(err)
		}
		k.Close()
	}
	crash()
	crash()
	defer kernels.NoteCrashes(nil)
	kernels.NoteCrashes(cache.Open(newApp(nil, nil, nil).cached("kernels")))
	cases := slices.DeleteFunc(selftest.Quick(), func(c selftest.Case) bool { return c.Kernel != kernel && c.Kernel != other })
	for _, retry := range []bool{false, true} {
		var out bytes.Buffer
		d := testDoctor(&out)
		d.device.find(d.app.vulkan(), "")
		if d.device.chosen == nil {
			t.Fatalf("no device: %s", &out)
		}
		if retry {
			d.kept.retry()
		}
		d.tests.testCases(t.Context(), slices.Clone(cases))
		d.kept.examine()
		d.found.printProblems()
		d.device.closeInstance()
		text := out.String()
		var failed []string
		for _, k := range d.tests.reports {
			if !k.Pass {
				failed = append(failed, k.Name)
			}
		}
		if retry {
			if len(failed) > 0 || strings.Contains(text, "ended leat") || len(d.kept.cache.Crashed) > 0 {
				t.Errorf("with --retry %v failed:\n%s", failed, text)
			}
			continue
		}
		why := "the driver ended leat 2 times as it compiled this kernel"
		if len(failed) != 1 || failed[0] != kernel || d.kept.cache.Crashed[kernel] != why || d.found.failure != nil {
			t.Errorf("%v failed, %v crashed, the verdict is %v, want %s alone, and that leat runs", failed, d.kept.cache.Crashed, d.found.failure, kernel)
		}
		for _, want := range []string{"crashed   " + kernel + "\n", "kernel " + kernel + " is not used, another is used: " + why, "hint: update the driver; leat doctor --retry tries it again"} {
			if !strings.Contains(text, want) {
				t.Errorf("does not say %q:\n%s", want, text)
			}
		}
	}
}
