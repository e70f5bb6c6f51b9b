package main

import (
	"fmt"
	"strings"
	"time"

	"leat/engine"
	"leat/internal/bench"
)

// busyStats say what kept a decode from being faster: shares of its time, and the rates
// at which weights came.
type busyStats struct {
	Disk       float64 `json:"disk_share"`
	Link       float64 `json:"link_share"`
	Device     float64 `json:"device_share"`
	Stalled    float64 `json:"stalled_share"` // the device stood idle for want of weights
	Record     float64 `json:"record_share"`  // a CPU recorded and submitted
	DiskPerSec float64 `json:"disk_bytes_per_second"`
	LinkPerSec float64 `json:"link_bytes_per_second"`

	Experts *bench.Experts `json:"experts,omitempty"` // that share slots of VRAM
}

// expertsFound is where the experts were that layers asked for.
func expertsFound(x *bench.Experts) string {
	return fmt.Sprintf("%.0f %% of the experts asked for were in VRAM, %d came from RAM, %d from disk; %d left VRAM", 100*x.HitRate, x.HostMisses, x.DiskMisses, x.Evictions)
}

// expertsTook is what that was for a token, and for a step to wait.
func expertsTook(x *bench.Experts) string {
	size := func(bytes float64) string { return formatSize(int64(bytes)) }
	return fmt.Sprintf("a token used %s of experts in VRAM, %s from RAM, %s from disk; a step waited %.3g ms for experts, all of them %s",
		size(x.VRAMPerToken), size(x.RAMPerToken), size(x.DiskPerToken), x.StalledMS, seconds(x.Stalled))
}

// expertsDistinct is how many experts a chunk needed.
func expertsDistinct(x *bench.Experts) string {
	n := int((x.Tokens + x.Steps/2) / x.Steps)
	return fmt.Sprintf("a layer needed %.1f different experts in a step of %d %s", x.Distinct, n, plural(n, "token"))
}

// expertRows are what /stats says of an answer's experts: nothing where all were in VRAM.
func expertRows(s *runStats) (rows [][2]string) {
	if s.Busy != nil && s.Busy.Experts != nil {
		x := s.Busy.Experts
		rows = append(rows, [2]string{"experts", "last answer: " + expertsFound(x)}, [2]string{"", expertsTook(x)})
	}
	if x := s.Prefill; x != nil {
		rows = append(rows, [2]string{"experts", "its prompt: " + expertsDistinct(x) + "; " + expertsFound(x)})
	}
	return rows
}

// busyOf is what happened from one look at a model to a later one.
func busyOf(from, to engine.Stats, took time.Duration) *busyStats {
	s := took.Seconds()
	if s <= 0 {
		return nil
	}
	share := func(a, b time.Duration) float64 { return (b - a).Seconds() / s }
	return &busyStats{
		Disk: share(from.Disk, to.Disk), Link: share(from.Link, to.Link), Device: share(from.Compute, to.Compute),
		Stalled: share(from.Stalled, to.Stalled), Record: share(from.Record, to.Record),
		DiskPerSec: float64(to.DiskBytes-from.DiskBytes) / s, LinkPerSec: float64(to.UploadedBytes-from.UploadedBytes) / s,
		Experts: bench.ExpertsOf(&from, &to),
	}
}

// String is one line; what did nothing is left out.
func (b *busyStats) String() string {
	var parts []string
	say := func(what string, share, perSec float64) {
		if perSec > 0 {
			parts = append(parts, fmt.Sprintf("the %s %.0f %% (%.2f GB/s)", what, 100*share, perSec/1e9))
		}
	}
	say("link", b.Link, b.LinkPerSec)
	say("disk", b.Disk, b.DiskPerSec)
	parts = append(parts, fmt.Sprintf("the device %.0f %%", 100*b.Device))
	text := "decode kept busy " + strings.Join(parts, ", ")
	if b.Stalled > 0 {
		text += fmt.Sprintf("; the device waited for weights %.0f %%", 100*b.Stalled)
	}
	if b.Experts != nil {
		text += fmt.Sprintf("; %s", expertsFound(b.Experts))
	}
	return text
}
