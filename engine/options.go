package engine

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"leat/gguf"
	"leat/shaders"
)

// Options tells [Load] where a model may live. The zero value is a good start. Sizes are in bytes.
type Options struct {
	Device        string // name, UUID or index as "leat devices" prints it; "": the one with most VRAM
	ContextLength int    // tokens a session can hold; 0: what fits, at most the trained length
	Sessions      int    // sessions that may be open at a time, each with a full context; 0: 1
	DeviceBytes   int64  // VRAM for all that the model needs; 0: what the driver says is free, less a reserve
	HostBytes     int64  // pinned RAM for staging and for weights that VRAM does not hold; 0: what is available, less a reserve
	KVType        string // type of the KV cache, one of [KVTypes]; "": f16. Encoders have f32, whatever is asked for. q8_0 and q4_0 want heads of a multiple of 32 values
	CacheDir      string // folder to keep compiled kernels and the results of their self-tests in; "": nothing is kept

	Pace        string // "auto": the device rests where it would get hotter than TargetTempC; "off": it never rests; "": auto
	TargetTempC int    // °C; 0: a few degrees below the temperature at which the device slows itself, or 83 where that is not known
	Sensor      Sensor // reads the device's temperature; nil: the device's own sensor, where there is one

	Logger   *slog.Logger                       // nil: silent
	Progress func(doneBytes, totalBytes int64)  // called by another goroutine until VRAM and RAM hold all weights that they are to keep; nil: none
	SelfTest func(kernel string) (ended func()) // called before a kernel is tested on this driver, once before its first use; the function it returns is called after the test; nil: none

	Tuning Tuning // for measurements and unusual devices
}

// A target of room temperature would stop the device, one above all limits do nothing.
const leastTarget, mostTarget = 30, 120

// validated returns o with defaults filled in, or an [*OptionError].
func (o Options) validated() (Options, error) {
	o.KVType = strings.ToLower(cmp.Or(o.KVType, "f16"))
	if !slices.Contains(KVTypes(), o.KVType) {
		return o, &OptionError{"KVType", o.KVType, strings.Join(KVTypes(), ", ")}
	}
	o.Pace = cmp.Or(o.Pace, "auto")
	if o.Pace != "auto" && o.Pace != "off" {
		return o, &OptionError{"Pace", o.Pace, "auto or off"}
	}
	if o.TargetTempC != 0 && (o.TargetTempC < leastTarget || o.TargetTempC > mostTarget) {
		return o, &OptionError{"TargetTempC", fmt.Sprint(o.TargetTempC), fmt.Sprintf("%d to %d °C, or 0 to have it chosen", leastTarget, mostTarget)}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	err := notNegative([]count{
		{"ContextLength", int64(o.ContextLength)}, {"DeviceBytes", o.DeviceBytes}, {"HostBytes", o.HostBytes}, {"Sessions", int64(o.Sessions)},
	})
	if err != nil {
		return o, err
	}
	return o, o.Tuning.validate()
}

// count is an option that is a number of something.
type count struct {
	name string
	v    int64
}

func notNegative(list []count) error {
	for _, n := range list {
		if n.v < 0 {
			return &OptionError{n.name, fmt.Sprint(n.v), "0 or more"}
		}
	}
	return nil
}

// KVTypes lists what [Options].KVType may be, the default first.
func KVTypes() []string {
	var names []string
	for _, t := range shaders.KVTypes {
		names = append(names, strings.ToLower(t.String()))
	}
	return names
}

// kv returns the KV cache's type.
func (o *Options) kv() gguf.Type {
	for _, t := range shaders.KVTypes {
		if strings.EqualFold(t.String(), o.KVType) {
			return t
		}
	}
	return gguf.F16
}
