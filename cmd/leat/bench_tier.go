package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"leat/internal/bench"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/predict/gpus"
)

// emulation is what of another machine this one plays. A rate of 0 is not slowed down: it
// was not asked for, or this machine is no faster.
type emulation struct {
	Tier string  `json:"tier"`
	VRAM int64   `json:"vram_bytes"` // of the GPU; a desktop and the driver take some of it
	RAM  int64   `json:"ram_bytes"`  // of the machine
	Link float64 `json:"link_bytes_per_second,omitempty"`
	Disk float64 `json:"disk_bytes_per_second,omitempty"`
	Mem  float64 `json:"vram_bytes_per_second,omitempty"` // weights, as our kernels would read them there
}

// String is what the table says of it.
func (e *emulation) String() string {
	text := fmt.Sprintf("%s, emulated: VRAM and RAM", e.Tier)
	for _, r := range []struct {
		name string
		rate float64
	}{{"link", e.Link}, {"disk", e.Disk}, {"weights in VRAM", e.Mem}} {
		if r.rate > 0 {
			text += fmt.Sprintf(", %s %s", r.name, formatRate(r.rate))
		}
	}
	return text
}

// tiersAsked are the tiers of --tier.
func (f *benchFlags) tiersAsked() (list []gpus.Tier, err error) {
	for _, name := range f.tiers {
		if name == "all" {
			list = append(list, gpus.Tiers()...)
			continue
		}
		t, err := gpus.FindTier(name)
		if err != nil {
			var missing *gpus.NotFoundError
			errors.As(err, &missing)
			return nil, &usageError{text: "--tier: " + err.Error(), hint: "did you mean " + strings.Join(append(missing.Near, missing.Among...), ", ") + "? \"leat plan --gpu list\" names all"}
		}
		list = append(list, t)
	}
	return list, nil
}

// tierConfigurations are those of the tiers that fit here; the others are noted.
func (r *bencher) tierConfigurations() (list []benchConfig, err error) {
	tiers, err := r.f.tiersAsked()
	if err != nil {
		return nil, err
	}
	for _, t := range tiers {
		b, err := r.tierBudget(&t)
		if err != nil {
			return nil, optionError(err)
		}
		if b.DeviceBytes > r.budget.DeviceBytes && !r.leavesRoom(b) {
			r.report.note("%s does not fit here: it has %s of VRAM for a model, this device %s", t.Name, formatSize(b.DeviceBytes), formatSize(r.budget.DeviceBytes))
			continue
		}
		if b.HostBytes > r.budget.HostBytes {
			r.report.note("%s: RAM for %s, it would have %s", t.Name, formatSize(r.budget.HostBytes), formatSize(b.HostBytes))
			b.HostBytes = r.budget.HostBytes
		}
		c := benchConfig{VRAM: min(b.DeviceBytes, r.budget.DeviceBytes), RAM: b.HostBytes, Emulated: &emulation{Tier: t.Name, VRAM: t.VRAMBytes, RAM: t.RAMBytes}}
		if r.f.emulate {
			r.slow(&t, c.Emulated)
		}
		list = append(list, c)
	}
	return list, nil
}

// tierBudget is what a model may spend in that machine.
func (r *bencher) tierBudget(t *gpus.Tier) (plan.Budget, error) {
	o, on := r.f.elsewhere(r.a, &t.GPU, t.RAMBytes)
	o.ContextLength = r.options(benchConfig{}).ContextLength
	return budgetOf(o, &on, r.hyper, r.model)
}

// leavesRoom reports whether all of the model stays within a budget, and this device has as
// much as that takes: then its having less than the budget changes nothing.
func (r *bencher) leavesRoom(b plan.Budget) bool {
	p, err := plan.Make(r.hyper, r.model, b)
	return err == nil && p.StreamedBytes == 0 && p.DeviceBytes <= r.budget.DeviceBytes
}

// slow finds the rates at which another machine would be slower than this one.
func (r *bencher) slow(t *gpus.Tier, e *emulation) {
	there, here := predict.FromDataSheet(&t.GPU, t.DiskBytesPerSec), r.report.Ceilings
	var faster []string
	for _, lane := range []struct {
		name        string
		there, here float64
		to          *float64
	}{{"link", there.Link.BytesPerSec, here.Link, &e.Link}, {"disk", there.Disk.BytesPerSec, here.Disk, &e.Disk}, {"VRAM", there.Kernels.BytesPerSec, here.VRAM, &e.Mem}} {
		if lane.here == 0 || lane.there < lane.here {
			*lane.to = lane.there
			continue
		}
		faster = append(faster, fmt.Sprintf("%s %s", lane.name, formatRate(lane.there)))
	}
	if len(faster) > 0 {
		r.report.note("%s would be faster than this machine, which is not slowed there: %s", t.Name, strings.Join(faster, ", "))
	}
}

// emulated slows the engine down, and what it is held against.
func (c *benchConfig) emulated(o *bench.Options) {
	e := c.Emulated
	if e == nil {
		return
	}
	o.Engine.Tuning.Limits.LinkBytesPerSec, o.Engine.Tuning.Limits.DiskBytesPerSec, o.Engine.Tuning.Limits.VRAMBytesPerSec = e.Link, e.Disk, e.Mem
	slower := func(here *float64, there float64) {
		if there > 0 && (*here == 0 || there < *here) {
			*here = there
		}
	}
	slower(&o.Ceilings.Link, e.Link)
	slower(&o.Ceilings.Disk, e.Disk)
	slower(&o.Ceilings.VRAM, e.Mem)
	if o.Speeds == nil {
		return
	}
	s := *o.Speeds
	slower(&s.Link.BytesPerSec, e.Link)
	slower(&s.Disk.BytesPerSec, e.Disk)
	if s.Disk.FirstBytesPerSec > 0 {
		slower(&s.Disk.FirstBytesPerSec, e.Disk)
	}
	if e.Mem > 0 {
		s.Kernels.BytesPerSec, s.Kernels.TypeBytesPerSec, s.Kernels.TypeRowSeconds = e.Mem, nil, nil
	}
	o.Speeds = &s
}

// listTiers prints the machines that "all" means.
func (f *benchFlags) listTiers(a *app) error {
	tiers := gpus.Tiers()
	if f.json {
		return a.printJSON(tiers)
	}
	for _, t := range tiers {
		link := "one memory with the CPU"
		if !t.UMA {
			link = fmt.Sprintf("PCIe %d x%d", t.PCIe, t.Lanes)
		}
		fmt.Fprintf(a.out, "%-14s %4.0f GiB VRAM %4.0f GiB RAM  disk %4.1f GB/s  %s\n", t.Name, float64(t.VRAMBytes)/(1<<30), float64(t.RAMBytes)/(1<<30), t.DiskBytesPerSec/1e9, link)
	}
	return nil
}

// completeTier offers the tiers that "all" means, written as they are typed.
func completeTier() (words []string) {
	for _, t := range gpus.Tiers() {
		words = append(words, strings.ToLower(strings.ReplaceAll(t.Name, " ", ""))+"\t"+t.Name)
	}
	slices.Sort(words)
	return append(words, "all\teach that fits this device", "list\tname them")
}
