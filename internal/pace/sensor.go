package pace

// Reading is what a sensor says of a device at a moment.
type Reading struct {
	TempC    float64
	PowerW   float64 // 0: not known
	ClockMHz int     // 0: not known
	Slowed   bool    // the device says that it runs slower because of heat
}

// Sensor reads one device. Its methods are called by one goroutine at a time.
type Sensor interface {
	Name() string           // "NVML", "amdgpu"
	SlowdownC() float64     // temperature at which the device slows itself; 0: not known
	Read() (Reading, error) // may take milliseconds: never called on a step's path
	Close() error
}

// DefaultTargetC is the target where neither the user nor the sensor names a temperature.
const DefaultTargetC = 83

// margin is how many °C below a device's own slowdown its target lies.
const margin = 5

// AutoTarget is the target for a device that slows itself at slowdownC; 0: not known.
func AutoTarget(slowdownC float64) float64 {
	if slowdownC < 50 { // no device slows itself so cool: a register with something else in it
		return DefaultTargetC
	}
	return slowdownC - margin
}
