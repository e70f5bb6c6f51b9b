package vk

import (
	"errors"
	"fmt"
	"testing"
)

func TestCallError(t *testing.T) {
	for _, c := range []struct {
		name   string
		result Result
		is     error
		text   string
	}{
		{"lost device", -4, ErrDeviceLost, "vkQueueSubmit of the compute queue: VK_ERROR_DEVICE_LOST"},
		{"no memory", -2, ErrOutOfDeviceMemory, "vkQueueSubmit of the compute queue: VK_ERROR_OUT_OF_DEVICE_MEMORY"},
		{"unknown", -123456, Result(-123456), "vkQueueSubmit of the compute queue: VkResult(-123456)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fmt.Errorf("step: %w", check("vkQueueSubmit", "the compute queue", c.result))
			var call *CallError
			if !errors.As(err, &call) || !errors.Is(err, c.is) || errors.Is(err, ErrFeatureNotPresent) {
				t.Errorf("%v: want a CallError that is %v and nothing else", err, c.is)
			}
			if got := call.Error(); got != c.text {
				t.Errorf("it reads %q, want %q", got, c.text)
			}
		})
	}
	for _, r := range []Result{0, 1, 5} { // success, not ready, incomplete
		if err := check("vkQueueSubmit", "", r); err != nil {
			t.Errorf("%d: %v, want no error", r, err)
		}
	}
}

func TestHint(t *testing.T) {
	err := noDriver(check("vkCreateInstance", "", ErrIncompatibleDriver))
	var h interface{ Hint() string }
	if !errors.As(err, &h) || h.Hint() == "" {
		t.Errorf("%v has no hint", err)
	}
	if !errors.Is(err, ErrNoDriver) || !errors.Is(err, ErrIncompatibleDriver) {
		t.Errorf("%v: want ErrNoDriver and ErrIncompatibleDriver", err)
	}
}

func TestWithout(t *testing.T) {
	all := Features{Float16: true, Storage16: true, Int8: true, Storage8: true, IntDotProduct: true, SubgroupArithmetic: true, SubgroupSizeControl: true, CooperativeMatrix: true}
	f, err := all.Without(Disabled())
	if err != nil || f != (Features{}) {
		t.Errorf("%+v, %v: want nothing left", f, err)
	}
	if f, err = all.Without([]string{"fp16"}); err != nil || f.Float16 || !f.Int8 {
		t.Errorf("without fp16: %+v, %v", f, err)
	}
	if _, err = all.Without([]string{"fp17"}); err == nil {
		t.Error("fp17 was accepted")
	}
}

func TestVersion(t *testing.T) {
	if got := MakeVersion(1, 3, 230).String(); got != "1.3.230" {
		t.Errorf("got %s", got)
	}
}
