package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/bench"
)

// benchFormat counts up when a field changes its meaning or goes; new ones may come.
const benchFormat = 1

// benchReport is what leat bench --json prints. docs/bench.md documents it.
type benchReport struct {
	Format         int            `json:"format"`
	Leat           versionInfo    `json:"leat"`
	Command        []string       `json:"command"`
	Started        time.Time      `json:"started"`
	Machine        benchMachine   `json:"machine"`
	Device         deviceReport   `json:"device"`
	Model          benchModel     `json:"model"`
	Settings       benchSettings  `json:"settings"`
	Ceilings       bench.Ceilings `json:"ceilings"`
	Configurations []benchConfig  `json:"configurations"`
	Notes          []string       `json:"notes,omitempty"`
	Interrupted    bool           `json:"interrupted,omitempty"`
}

func (r *benchReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

type benchMachine struct {
	OS     string    `json:"os"`
	Kernel string    `json:"kernel"`
	CPU    cpuReport `json:"cpu"`
}

type benchModel struct {
	Name         string `json:"name"` // of its file or folder
	Title        string `json:"title,omitempty"`
	Architecture string `json:"architecture"`
	Quantization string `json:"quantization"`
	Bytes        int64  `json:"bytes"` // of all tensors
	Parameters   int64  `json:"parameters"`
	Layers       int    `json:"layers"`
	Trained      int    `json:"trained_context"`
}

func benchModelOf(name string, m *pack.Model, h *arch.Hyper) benchModel {
	var s pack.Manifest
	s.Summarize(m.Metadata, m.Units)
	out := benchModel{Name: filepath.Base(name), Title: s.Model, Architecture: h.Architecture, Quantization: s.Quantization, Layers: h.BlockCount, Trained: h.ContextLength}
	for i := range m.Units {
		for _, t := range m.Units[i].Tensors {
			n := int64(1)
			for _, d := range t.Shape {
				n *= d
			}
			out.Bytes, out.Parameters = out.Bytes+t.Bytes, out.Parameters+n
		}
	}
	return out
}

type benchSettings struct {
	Repetitions int      `json:"repetitions"`
	Limit       float64  `json:"limit_seconds"` // 0: none
	KVType      string   `json:"kv_type"`
	Chunk       int      `json:"chunk,omitempty"` // 0: chosen
	Pace        string   `json:"pace"`
	TargetC     int      `json:"target_c,omitempty"` // 0: chosen
	OneQueue    bool     `json:"one_queue,omitempty"`
	Disabled    []string `json:"disabled_features,omitempty"`
}

func (f *benchFlags) settings() benchSettings {
	return benchSettings{f.repetitions, f.limit.Seconds(), f.kvType, f.chunk, f.pace, f.targetTemp, f.oneQueue, f.disable}
}

// benchConfig is one set of budgets, and what was measured within it.
type benchConfig struct {
	VRAM     int64      `json:"vram_asked_bytes"` // 0: what was free
	RAM      int64      `json:"ram_asked_bytes"`  // 0: what was available
	Ring     int64      `json:"ring_asked_bytes,omitempty"`
	Emulated *emulation `json:"emulated,omitempty"` // of a tier; null: this machine as it is
	Error    string     `json:"error,omitempty"`
	bench.Result
}

// name tells a configuration from its neighbours.
func (c *benchConfig) name() string {
	name := "all VRAM"
	switch {
	case c.Emulated != nil:
		return c.Emulated.Tier
	case c.VRAM > 0:
		name = budgetText(c.VRAM)
	}
	if c.Ring > 0 {
		name += ", ring " + budgetText(c.Ring)
	}
	return name
}

// has reports whether any row has what f looks for.
func (r *benchReport) has(f func(*bench.Row) bool) bool {
	return slices.ContainsFunc(r.Configurations, func(c benchConfig) bool {
		return slices.ContainsFunc(c.Rows, func(row bench.Row) bool { return f(&row) })
	})
}
