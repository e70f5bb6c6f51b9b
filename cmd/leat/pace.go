package main

import (
	"fmt"
	"strings"

	"leat/engine"
	"leat/internal/pace"
)

// paceStats are what --stats, /stats and --json say of heat and rests.
type paceStats struct {
	By             string  `json:"by"` // "sensor", "drift" or "off"
	Sensor         string  `json:"sensor,omitempty"`
	TempC          float64 `json:"temp_c,omitempty"`
	TargetC        float64 `json:"target_c,omitempty"`
	PowerW         float64 `json:"power_w,omitempty"`
	ClockMHz       int     `json:"clock_mhz,omitempty"`
	Slowed         bool    `json:"slowed_by_heat,omitempty"`
	Drift          float64 `json:"drift,omitempty"` // of the time that work takes; 1: as when the GPU was cool
	RestPerLayerMS float64 `json:"rest_per_layer_ms"`
	RestShare      float64 `json:"rest_share"` // of the time of late steps
}

func paceStatsOf(r engine.PaceReport) paceStats {
	return paceStats{
		By: r.By, Sensor: r.Sensor, TempC: r.Reading.TempC, TargetC: r.TargetC, PowerW: r.Reading.PowerW,
		ClockMHz: r.Reading.ClockMHz, Slowed: r.Reading.Slowed, Drift: r.Drift,
		RestPerLayerMS: 1000 * r.RestPerLayer.Seconds(), RestShare: r.RestShare,
	}
}

// String is one line: "71 °C of 83, 212 W (NVML); rested 3.1 % of the time, 0.40 ms a layer".
func (p *paceStats) String() string {
	var b strings.Builder
	switch p.By {
	case pace.BySensor.String():
		fmt.Fprintf(&b, "%.0f °C of %.0f", p.TempC, p.TargetC)
		if p.PowerW > 0 {
			fmt.Fprintf(&b, ", %.0f W", p.PowerW)
		}
		fmt.Fprintf(&b, " (%s)", p.Sensor)
	case pace.ByDrift.String():
		fmt.Fprintf(&b, "no temperature; layers take %.2f times as long as when the GPU was cool", p.Drift)
	default:
		return "off"
	}
	if p.Slowed {
		b.WriteString(", slowed by heat")
	}
	if p.RestShare == 0 {
		b.WriteString("; no rests")
	} else {
		fmt.Fprintf(&b, "; rested %.1f %% of the time, %.2f ms a layer", 100*p.RestShare, p.RestPerLayerMS)
	}
	return b.String()
}
