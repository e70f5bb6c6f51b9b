package engine

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk"
)

// Tuning is for measurements and unusual devices: the zero value has the engine choose everything. What it says changes how fast a model
// runs, and no answer but for Disable and Enable, which may change the last bits of logits. Sizes are in bytes.
type Tuning struct {
	// How the work is cut.
	Chunk        int           // most tokens of a prompt in one step; 0: chosen
	MaxSubmit    time.Duration // how long the device may be busy at a stretch, so that a desktop on it stays usable; 0: 250 ms
	ExpertPolicy string        // which experts leave VRAM where not all fit, one of [ExpertPolicies]; "": adaptive
	Layout       Layout        // of weights in memory
	Limits       Limits        // to try how a slower machine would do

	// How the device is used.
	Disable  []string // features not to use: "fp16", "int8", "subgroup", "coopmat", "int64", "persistent"
	Enable   []string // features that a CPU is not asked for because they are slow on it: "coopmat", "persistent"
	Discrete bool     // upload weights even where the device shares its memory with the host
	OneQueue bool     // upload on the compute queue even where there is a transfer queue

	Validate     bool   // turn Vulkan's validation layers on; slow
	VulkanLoader string // path of the Vulkan loader; "": the system's

	Routing io.Writer // gets, after every step, which experts each token used, in the format that tools/cachesim reads; nil: nothing is written
	Trace   *Trace    // keeps when the disk, the link, the device and the host were busy; nil: nothing is kept
}

// Layout is how a model's weights are laid out in memory. Sizes are in bytes; 0: chosen.
type Layout struct {
	Spread       Spread // which units of the model stay in VRAM
	RingBytes    int64  // VRAM that streamed weights pass through
	BlockBytes   int64  // about the size of one allocation of resident units, and the least that is given back to other programs; 0: 256 MiB
	StagingSlots int    // buffers of pinned RAM that uploads pass through; 0: 24, fewer where RAM is short
	StagingBytes int64  // of a staging buffer: the most that is read at a time; 0: 8 MiB
	PartBytes    int64  // of a part of a layer, or of some of its experts, at most; 0: 192 MiB
	Halves       int64  // VRAM to decode weights into where products are computed in halves; 0: by the VRAM
	Slots        bool   // experts share slots of VRAM even where all of them fit
}

// Spread is a way to choose the units that stay in VRAM where not all fit.
type Spread int

// The spreads.
const (
	Even   Spread = iota // resident units stand evenly between the streamed ones, so that each transfer has compute to hide behind
	Prefix               // the first layers are resident
	Edges                // the first and the last layers are resident
)

// String names the spread.
func (s Spread) String() string { return plan.Spread(s).String() }

// Limits slow parts of the machine down, in bytes a second; 0: not at all. What kernels compute stays as fast.
type Limits struct {
	LinkBytesPerSec float64 // uploads to VRAM
	DiskBytesPerSec float64 // reads of weights from disk
	VRAMBytesPerSec float64 // reads of weights by kernels
}

// ExpertPolicies lists what [Tuning].ExpertPolicy may be; "weighted" may be followed by a half-life in steps, as
// "weighted:128".
func ExpertPolicies() []string { return expertcache.Policies() }

func (t *Tuning) validate() error {
	l := &t.Layout
	err := notNegative([]count{
		{"Tuning.Chunk", int64(t.Chunk)}, {"Tuning.MaxSubmit", int64(t.MaxSubmit)}, {"Tuning.Layout.RingBytes", l.RingBytes},
		{"Tuning.Layout.BlockBytes", l.BlockBytes}, {"Tuning.Layout.StagingSlots", int64(l.StagingSlots)}, {"Tuning.Layout.StagingBytes", l.StagingBytes},
		{"Tuning.Layout.PartBytes", l.PartBytes}, {"Tuning.Layout.Halves", l.Halves},
	})
	if err != nil {
		return err
	}
	if l.Spread < Even || l.Spread > Edges {
		return &OptionError{"Tuning.Layout.Spread", fmt.Sprint(int(l.Spread)), "Even, Prefix or Edges"}
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"Link", t.Limits.LinkBytesPerSec}, {"Disk", t.Limits.DiskBytesPerSec}, {"VRAM", t.Limits.VRAMBytesPerSec}} {
		if !(r.v >= 0) {
			return &OptionError{"Tuning.Limits." + r.name + "BytesPerSec", fmt.Sprint(r.v), "0 (no limit) or more"}
		}
	}
	if e, bad := unknown(t.Enable, vk.Enabled()); bad {
		return &OptionError{"Tuning.Enable", e, strings.Join(vk.Enabled(), ", ")}
	}
	if d, bad := unknown(t.Disable, vk.Disabled()); bad {
		return &OptionError{"Tuning.Disable", d, strings.Join(vk.Disabled(), ", ")}
	}
	if t.ExpertPolicy != "" {
		if _, err := expertcache.ByName(t.ExpertPolicy); err != nil {
			return &OptionError{"Tuning.ExpertPolicy", t.ExpertPolicy, strings.Join(expertcache.Policies(), ", ")}
		}
	}
	return nil
}

// unknown is the first of names that is none of known.
func unknown(names, known []string) (string, bool) {
	if i := slices.IndexFunc(names, func(n string) bool { return !slices.Contains(known, n) }); i >= 0 {
		return names[i], true
	}
	return "", false
}

// sweep is l as plans have it.
func (l *Layout) sweep() plan.Sweep {
	return plan.Sweep{
		Spread: plan.Spread(l.Spread), BlockBytes: l.BlockBytes, StagingSlots: l.StagingSlots, StagingBytes: l.StagingBytes,
		PartBytes: l.PartBytes, Halves: l.Halves, Slots: l.Slots,
	}
}
