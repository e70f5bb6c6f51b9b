package vk

import (
	"errors"
	"fmt"
	"strings"

	"leat/vk/internal/raw"
)

// Result is a VkResult; it prints as the specification spells it.
type Result = raw.Result

// The results that callers tell apart, for errors.Is.
const (
	ErrNotReady           Result = raw.NotReady
	ErrOutOfHostMemory    Result = raw.ErrorOutOfHostMemory
	ErrOutOfDeviceMemory  Result = raw.ErrorOutOfDeviceMemory
	ErrInitialization     Result = raw.ErrorInitializationFailed
	ErrDeviceLost         Result = raw.ErrorDeviceLost
	ErrMemoryMapFailed    Result = raw.ErrorMemoryMapFailed
	ErrLayerNotPresent    Result = raw.ErrorLayerNotPresent
	ErrExtensionNotThere  Result = raw.ErrorExtensionNotPresent
	ErrFeatureNotPresent  Result = raw.ErrorFeatureNotPresent
	ErrIncompatibleDriver Result = raw.ErrorIncompatibleDriver
	ErrTooManyObjects     Result = raw.ErrorTooManyObjects
)

// ErrNoDriver is wrapped by every error of Open that means this machine has no
// usable Vulkan: no loader, no driver, no device.
var ErrNoDriver = errors.New("no usable Vulkan")

// ErrNoLoader is wrapped, beside ErrNoDriver, where not even the loader was found.
var ErrNoLoader = errors.New("no Vulkan loader")

// CallError is a Vulkan call that failed.
type CallError struct {
	Call   string // "vkAllocateMemory"
	What   string // the object it was for, "" where the call says it all
	Result Result
}

func (e *CallError) Error() string {
	if e.What == "" {
		return fmt.Sprintf("%s: %v", e.Call, e.Result)
	}
	return fmt.Sprintf("%s of %s: %v", e.Call, e.What, e.Result)
}

// Unwrap makes errors.Is(err, ErrDeviceLost) work.
func (e *CallError) Unwrap() error { return e.Result }

// Hint says what may help; "" where we don't know.
func (e *CallError) Hint() string {
	switch e.Result {
	case ErrDeviceLost:
		return "the driver gave the device up: open it again; if it happens again, update the driver and look into the system's log"
	case ErrOutOfDeviceMemory:
		return "less device memory was free than the driver said: close what else uses the device, or take a smaller budget"
	case ErrOutOfHostMemory:
		return "the system gave no more memory: close other programs, or take a smaller budget"
	}
	return ""
}

// check turns the result of a call into an error, nil for success codes.
// Codes above zero (incomplete, timeout) are for the caller to look at.
func check(call, what string, r raw.Result) error {
	if r >= 0 {
		return nil
	}
	return &CallError{Call: call, What: what, Result: r}
}

// FeatureError is a device that lacks what we cannot do without.
type FeatureError struct {
	Device string
	Lacks  []string // "bufferDeviceAddress", "Vulkan 1.2 (has 1.1.126)"
}

func (e *FeatureError) Error() string {
	return fmt.Sprintf("open device %q: it lacks %s", e.Device, strings.Join(e.Lacks, " and "))
}

// Hint says which devices would do.
func (e *FeatureError) Hint() string {
	return "Vulkan 1.2 with buffer device addresses and timeline semaphores is needed (NVIDIA GTX 900, AMD GCN, Intel Gen9 and later): update the driver or choose another device"
}

// SelectError is a device selection that names none of the devices there are.
type SelectError struct {
	Selection string
	Devices   []string // as "0: NVIDIA H100 (UUID)"
}

func (e *SelectError) Error() string {
	return fmt.Sprintf("select device %q: no device has such an index, UUID or part of a name", e.Selection)
}

// Hint lists the devices there are.
func (e *SelectError) Hint() string { return "there are " + strings.Join(e.Devices, ", ") }

// hintError adds a hint, and what it is in our terms, to an error.
type hintError struct {
	err  error
	is   error // a sentinel it also is, or nil
	hint string
}

func (e *hintError) Error() string        { return e.err.Error() }
func (e *hintError) Unwrap() error        { return e.err }
func (e *hintError) Is(target error) bool { return errors.Is(e.is, target) }
func (e *hintError) Hint() string         { return e.hint }
