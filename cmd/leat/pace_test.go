package main

import (
	"testing"
	"time"

	"leat/engine"
)

func TestPaceStats(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    engine.PaceReport
		want string
	}{
		{"off", engine.PaceReport{}, "off"},
		{"cool", engine.PaceReport{By: "sensor", Sensor: "NVML", TargetC: 83, Reading: engine.Reading{TempC: 71, PowerW: 212.4}, Drift: 1}, "71 °C of 83, 212 W (NVML); no rests"},
		{"hot", engine.PaceReport{By: "sensor", Sensor: "amdgpu", TargetC: 83, Reading: engine.Reading{TempC: 83, Slowed: true}, RestPerLayer: 400 * time.Microsecond, RestShare: 0.031},
			"83 °C of 83 (amdgpu), slowed by heat; rested 3.1 % of the time, 0.40 ms a layer"},
		{"no sensor", engine.PaceReport{By: "drift", Drift: 1.125}, "no temperature; layers take 1.12 times as long as when the GPU was cool; no rests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := paceStatsOf(tt.r)
			if got := p.String(); got != tt.want {
				t.Errorf("got  %q\nwanted %q", got, tt.want)
			}
		})
	}
}
