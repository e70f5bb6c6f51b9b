package engine

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/expertcache"
	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/step"
	"leat/internal/trace"
	"leat/shaders"
	"leat/shaders/conform"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
)

// Options tells [Load] where a model may live. The zero value is a good start.
type Options struct {
	Device        string   // name, UUID or index as "leat devices" prints it; "": most VRAM
	ContextLength int      // tokens a session can hold; 0: what fits, at most the trained length
	DeviceBytes   int64    // VRAM budget; 0: the driver's free budget less a reserve
	HostBytes     int64    // pinned RAM for staging and spilled weights; 0: what is available less a reserve
	KVType        string   // "f16", "f32", "q8_0" or "q4_0": type of the KV cache; "": f16. The last two want heads of a multiple of 32 values
	Chunk         int      // most tokens of a prompt in one step; 0: chosen
	Sessions      int      // sessions that may be open at a time, each with a full context; 0: 1
	Disable       []string // device features not to use: "fp16", "int8", "subgroup", "coopmat", "int64", "persistent"
	Enable        []string // features not used by themselves: "coopmat" and "persistent" on a CPU, where they are slow
	RingBytes     int64    // VRAM that streamed weights pass through; 0: chosen
	ExpertPolicy  string   // which experts leave VRAM where not all fit: "lru", "weighted:128", "stale", "adaptive"; "": adaptive
	Sweep         Sweep    // for measurements: what is chosen otherwise
	Discrete      bool     // upload weights even where the device has its memory in common with the host
	OneQueue      bool     // upload on the compute queue even where there is a transfer queue
	Validate      bool     // turn Vulkan's validation layers on; slow
	VulkanLoader  string   // path of the Vulkan loader; "": the system's
	CacheDir      string   // folder for what is found out about a device and its driver: compiled kernels, their self-tests, what was tuned; "": nothing is kept

	// MaxSubmit is how long the device should be busy at a stretch, so that a desktop
	// on it stays usable; 0: a quarter of a second.
	MaxSubmit time.Duration

	// Pace says whether the device rests where it would get too hot: "auto" or "off"; "":
	// auto. TargetTempC is the temperature to keep; 0: a few degrees below the one at
	// which the device slows itself, or 83 where that is not known. Sensor is where
	// the temperature comes from; nil: the device's own, where there is one.
	Pace        string
	TargetTempC int
	Sensor      pace.Sensor

	Routing io.Writer // gets which experts each token used, in the format of tools/cachesim, at every step; nil: nobody does

	Trace *trace.Recorder // keeps what the disk, the link, the device and the host do; nil: nobody does
	Ops   *trace.Ops      // sums up the device's time by kernel, where it has timestamps; nil: nobody does
	// To try how a lesser machine would do, the link, the disk and the reading of weights in
	// VRAM can be made slower; 0: as fast as they are. What kernels compute stays as fast.
	LinkBytesPerSec, DiskBytesPerSec, VRAMBytesPerSec float64

	Logger   *slog.Logger                      // nil: silent
	Progress func(doneBytes, totalBytes int64) // called by another goroutine until all that VRAM and RAM keep is there; nil: none

	// SelfTest is called before a kernel is tested on this driver, which it is once before its first use, and what it
	// returns after that; nil: none.
	SelfTest func(kernel string) (over func())

	fault    file.Fault             // tests: fails reads
	device   vk.Fault               // tests: fails calls of Vulkan
	queues   int                    // tests: upload lanes, on as many queues as there are
	headroom func() int64           // tests: what the driver says of free VRAM, asked before every step
	waves    string                 // tests: experts that are there run "apart" from those that come, or "together"; "": as the device has it
	listens  bool                   // tests: the host listens to the device, a CPU too
	everyRow bool                   // rehearsals, tests: the last layer computes rows that nobody asks logits of, too
	hurried  bool                   // tests: a rehearsal times steps no oftener than it must
	ahead    float64                // tests: how seldom layers must miss an expert to go ahead, on a CPU too; 0: as elsewhere
	shared   mem.Shared             // tests: keep weights in place in such memory, whatever the budgets
	machine  *Machine               // tests: plan as on that one
	opened   func(*vk.Device)       // tests: may make it a lesser one; nil: leaves it as it is
	routes   bool                   // tests: see [kernels.Options]
	turns    bool                   // tests: see [kernels.Options]
	kernels  func(*kernels.Options) // tests: may break some; nil: leaves them as they are

	// lend has a device for a model with such options, or nil where that must have its own. Tests share a few: most of what a
	// small model costs is to compile kernels and to test them.
	lend func(*Options) (*lent, error)
}

// lent is a device, with its kernels, that a model uses and leaves open.
type lent struct {
	inst    *vk.Instance
	dev     *vk.Device
	kernels *kernels.Kernels
}

// A target of room temperature would stop the device, one above all limits do nothing.
const leastTarget, mostTarget = 30, 120

// validated returns o with defaults filled in, or says what is wrong with it.
func (o Options) validated() (Options, error) {
	if o.KVType == "" {
		o.KVType = "f16"
	}
	o.KVType = strings.ToLower(o.KVType)
	if !slices.Contains(KVTypes(), o.KVType) {
		return o, &OptionError{"KVType", o.KVType, strings.Join(KVTypes(), ", ")}
	}
	if o.Pace == "" {
		o.Pace = "auto"
	}
	if o.Pace != "auto" && o.Pace != "off" {
		return o, &OptionError{"Pace", o.Pace, "auto or off"}
	}
	if o.TargetTempC != 0 && (o.TargetTempC < leastTarget || o.TargetTempC > mostTarget) {
		return o, &OptionError{"TargetTempC", fmt.Sprint(o.TargetTempC), fmt.Sprintf("%d to %d °C, or 0 to have it chosen", leastTarget, mostTarget)}
	}
	for _, n := range []struct {
		name string
		v    int64
	}{{"ContextLength", int64(o.ContextLength)}, {"DeviceBytes", o.DeviceBytes}, {"HostBytes", o.HostBytes}, {"RingBytes", o.RingBytes}, {"Sweep.BlockBytes", o.Sweep.BlockBytes}, {"Sweep.StagingBytes", o.Sweep.StagingBytes}, {"Sweep.PartBytes", o.Sweep.PartBytes}, {"Sweep.Halves", o.Sweep.Halves}, {"Sweep.StagingSlots", int64(o.Sweep.StagingSlots)}, {"Chunk", int64(o.Chunk)}, {"Sessions", int64(o.Sessions)}, {"MaxSubmit", int64(o.MaxSubmit)}} {
		if n.v < 0 {
			return o, &OptionError{n.name, fmt.Sprint(n.v), "0 or more"}
		}
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"LinkBytesPerSec", o.LinkBytesPerSec}, {"DiskBytesPerSec", o.DiskBytesPerSec}, {"VRAMBytesPerSec", o.VRAMBytesPerSec}} {
		if !(r.v >= 0) {
			return o, &OptionError{r.name, fmt.Sprint(r.v), "0 (no limit) or more"}
		}
	}
	if o.Sweep.Spread < plan.Even || o.Sweep.Spread > plan.Edges {
		return o, &OptionError{"Sweep.Spread", fmt.Sprint(int(o.Sweep.Spread)), "Even, Prefix or Edges"}
	}
	for _, e := range o.Enable {
		if !slices.Contains(vk.Enabled(), e) {
			return o, &OptionError{"Enable", e, strings.Join(vk.Enabled(), ", ")}
		}
	}
	for _, d := range o.Disable {
		if !slices.Contains(vk.Disabled(), d) {
			return o, &OptionError{"Disable", d, strings.Join(vk.Disabled(), ", ")}
		}
	}
	if o.ExpertPolicy != "" {
		if _, err := expertcache.ByName(o.ExpertPolicy); err != nil {
			return o, &OptionError{"ExpertPolicy", o.ExpertPolicy, strings.Join(expertcache.Policies(), ", ")}
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o, nil
}

// newKernels returns the device's kernels, which are tested before their first use.
func (o *Options) newKernels(dev *vk.Device) (*kernels.Kernels, error) {
	g := kernels.Options{Logger: o.Logger, Cache: cache.Open(o.CacheDir), Test: o.selfTest, Routes: o.routes, Turns: o.turns}
	if o.kernels != nil {
		o.kernels(&g)
	}
	return kernels.New(dev, g)
}

func (o *Options) selfTest(k *kernels.Kernels, v kernels.Variant) error {
	if o.SelfTest != nil {
		defer o.SelfTest(v.Row.Name)()
	}
	return conform.Prove(k, v)
}

// KVTypes lists what [Options].KVType may be, the default first.
func KVTypes() []string {
	var names []string
	for _, t := range shaders.KVTypes {
		names = append(names, strings.ToLower(t.String()))
	}
	return names
}

// ExpertPolicies lists what [Options].ExpertPolicy may be; "weighted" may be followed by a half-life in steps, as
// "weighted:128".
func ExpertPolicies() []string { return expertcache.Policies() }

// kv returns the KV cache's type.
func (o *Options) kv() gguf.Type {
	for _, t := range shaders.KVTypes {
		if strings.EqualFold(t.String(), o.KVType) {
			return t
		}
	}
	return gguf.F16
}

// OptionError names an option, what was found and what is wanted.
type OptionError struct{ Name, Found, Want string }

// Error names all three.
func (e *OptionError) Error() string {
	return fmt.Sprintf("option %s: found %q, wanted %s", e.Name, e.Found, e.Want)
}

// Errors a caller may ask for with errors.Is or errors.As.
type (
	// BudgetError says what did not fit into a memory budget.
	BudgetError = plan.BudgetError
	// NotFiniteError says that a model computed logits that are no finite numbers, and after which position.
	NotFiniteError = step.NotFiniteError
	// SourceChangedError says that a file of the model was written to after [Load]: what VRAM and RAM hold stays good, what would be read
	// from it is refused.
	SourceChangedError = file.ChangedError
	// UnsupportedError says what about a model we cannot run.
	UnsupportedError = arch.UnsupportedError
	// Plan is where each unit of a model lives.
	Plan = plan.Plan
	// Sweep is what a plan chooses well by itself.
	Sweep = plan.Sweep
)

// ErrDeviceLost: the driver gave up on the device; the Model is dead. After any other error it is not.
var ErrDeviceLost error = vk.ErrDeviceLost

// ErrNoDevice: this machine has no usable Vulkan; the error's Hint says what to install.
var ErrNoDevice error = vk.ErrNoDriver
