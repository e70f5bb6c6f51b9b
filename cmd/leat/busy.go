package main

import (
	"fmt"
	"strings"
	"time"

	"leat/engine"
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

	Experts *expertUse `json:"experts,omitempty"` // that share slots of VRAM
}

// expertUse is where the experts were that layers asked for.
type expertUse struct {
	HitRate    float64 `json:"hit_rate"` // in VRAM
	Hits       int64   `json:"hits"`
	HostMisses int64   `json:"misses_in_ram"`
	DiskMisses int64   `json:"misses_on_disk"`
	Evictions  int64   `json:"evictions"`
}

func expertUseOf(x engine.ExpertStats) *expertUse {
	if x.Asked() == 0 {
		return nil
	}
	return &expertUse{x.HitRate(), x.Hits, x.HostMisses, x.DiskMisses, x.Evictions}
}

func (x *expertUse) String() string {
	return fmt.Sprintf("%.0f %% of the experts asked for were in VRAM, %d came from RAM, %d from disk", 100*x.HitRate, x.HostMisses, x.DiskMisses)
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
		Experts: expertUseOf(to.Experts.Less(from.Experts)),
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
		text += fmt.Sprintf("; %s", b.Experts)
	}
	return text
}
