package nvml

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ebitengine/purego"

	"leat/vk/dl"
)

// functions are the library's entry points. purego keeps what a call points to alive and
// in place; the library keeps none of it.
type functions struct {
	// nvmlReturn_t nvmlInit_v2(void)
	init func() int32
	// nvmlReturn_t nvmlShutdown(void)
	shutdown func() int32
	// const char *nvmlErrorString(nvmlReturn_t result)
	errorString func(result int32) string
	// nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
	byPCI func(pciBusID string, device *uintptr) int32
	// nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
	byUUID func(uuid string, device *uintptr) int32
	// nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
	temperature func(device uintptr, sensor uint32, temp *uint32) int32
	// nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType, unsigned int *temp)
	threshold func(device uintptr, kind uint32, temp *uint32) int32
	// nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
	power func(device uintptr, milliwatts *uint32) int32
	// nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
	clock func(device uintptr, kind uint32, megahertz *uint32) int32
	// nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *clocksThrottleReasons)
	reasons func(device uintptr, reasons *uint64) int32
}

// What nvml.h names.
const (
	success = 0 // NVML_SUCCESS

	temperatureGPU    = 0 // NVML_TEMPERATURE_GPU
	thresholdSlowdown = 1 // NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
	thresholdGPUMax   = 3 // NVML_TEMPERATURE_THRESHOLD_GPU_MAX: from here on below the base clock
	clockSM           = 1 // NVML_CLOCK_SM

	reasonSoftwareHeat = 0x20 // nvmlClocksThrottleReasonSwThermalSlowdown
	reasonHardwareHeat = 0x40 // nvmlClocksThrottleReasonHwThermalSlowdown
)

// Library is the opened library.
type Library struct{ fn functions }

// Device is one GPU. Its methods may be called by several goroutines.
type Device struct {
	lib    *Library
	handle uintptr
	once   sync.Once
}

// ErrNone: there is no NVIDIA driver here.
var ErrNone = errors.New("no NVIDIA management library")

// Open opens the library under the first of its names that there is.
func Open() (*Library, error) { return open(libraryNames) }

func open(names []string) (*Library, error) {
	var handle uintptr
	var errs []error
	for _, name := range names {
		h, err := openLibrary(name)
		if err == nil {
			handle = h
			break
		}
		errs = append(errs, err)
	}
	if handle == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNone, errors.Join(errs...))
	}
	l := &Library{}
	if err := l.bind(handle); err != nil {
		return nil, err
	}
	return l, l.check("nvmlInit_v2", l.fn.init())
}

func (l *Library) bind(handle uintptr) error {
	for _, f := range []struct {
		name string
		to   any
	}{
		{"nvmlInit_v2", &l.fn.init}, {"nvmlShutdown", &l.fn.shutdown}, {"nvmlErrorString", &l.fn.errorString},
		{"nvmlDeviceGetHandleByPciBusId_v2", &l.fn.byPCI}, {"nvmlDeviceGetHandleByUUID", &l.fn.byUUID},
		{"nvmlDeviceGetTemperature", &l.fn.temperature}, {"nvmlDeviceGetTemperatureThreshold", &l.fn.threshold},
		{"nvmlDeviceGetPowerUsage", &l.fn.power}, {"nvmlDeviceGetClockInfo", &l.fn.clock},
		{"nvmlDeviceGetCurrentClocksThrottleReasons", &l.fn.reasons},
	} {
		address, err := dl.Symbol(handle, f.name)
		if err != nil || address == 0 {
			return fmt.Errorf("look up %s in the NVIDIA management library: %w", f.name, errors.Join(err, ErrNone))
		}
		purego.RegisterFunc(f.to, address)
	}
	return nil
}

func (l *Library) check(what string, result int32) error {
	if result == success {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", what, l.fn.errorString(result), result)
}

// Close ends the use of the library; it stays loaded, as drivers' libraries should.
func (l *Library) Close() error { return l.check("nvmlShutdown", l.fn.shutdown()) }

// Device finds a GPU by its PCI address ("0000:65:00.0") or its UUID without prefix;
// either may be "". Closing it closes l.
func (l *Library) Device(pci, uuid string) (*Device, error) {
	d := &Device{lib: l}
	err := fmt.Errorf("find a GPU: it has neither a PCI address nor a UUID")
	if pci != "" {
		if err = l.check("nvmlDeviceGetHandleByPciBusId_v2 of "+pci, l.fn.byPCI(pci, &d.handle)); err == nil {
			return d, nil
		}
	}
	if uuid != "" {
		uuid = "GPU-" + strings.ToLower(uuid)
		if err = l.check("nvmlDeviceGetHandleByUUID of "+uuid, l.fn.byUUID(uuid, &d.handle)); err == nil {
			return d, nil
		}
	}
	return nil, err
}

// Close closes the library; safe to call twice.
func (d *Device) Close() (err error) {
	d.once.Do(func() { err = d.lib.Close() })
	return err
}

// TempC is the temperature of the GPU's die.
func (d *Device) TempC() (float64, error) {
	var v uint32
	err := d.lib.check("nvmlDeviceGetTemperature", d.lib.fn.temperature(d.handle, temperatureGPU, &v))
	return float64(v), err
}

// SlowdownC is where the GPU slows itself; 0: it doesn't say.
func (d *Device) SlowdownC() float64 {
	var slowdown, most uint32
	if d.lib.fn.threshold(d.handle, thresholdSlowdown, &slowdown) != success {
		slowdown = 0
	}
	if d.lib.fn.threshold(d.handle, thresholdGPUMax, &most) == success && most > 0 && (slowdown == 0 || most < slowdown) {
		slowdown = most
	}
	return float64(slowdown)
}

// PowerW is the power drawn; 0: it doesn't say.
func (d *Device) PowerW() float64 {
	var milliwatts uint32
	if d.lib.fn.power(d.handle, &milliwatts) != success {
		return 0
	}
	return float64(milliwatts) / 1000
}

// ClockMHz is the clock of the cores; 0: it doesn't say.
func (d *Device) ClockMHz() int {
	var v uint32
	if d.lib.fn.clock(d.handle, clockSM, &v) != success {
		return 0
	}
	return int(v)
}

// SlowedByHeat says that the clock is lower because of heat.
func (d *Device) SlowedByHeat() bool {
	var v uint64
	return d.lib.fn.reasons(d.handle, &v) == success && v&(reasonSoftwareHeat|reasonHardwareHeat) != 0
}
