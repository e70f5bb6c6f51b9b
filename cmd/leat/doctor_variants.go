package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/internal/selftest"
	"leat/vk"
)

// variantReport is one way to compute an op, and whether this device's steps take it.
type variantReport struct {
	Op      string   `json:"op"`
	Variant string   `json:"variant"`
	When    string   `json:"when,omitempty"`
	Used    bool     `json:"used"`
	Lacks   string   `json:"lacks,omitempty"`  // what the device has not got
	Failed  []string `json:"failed,omitempty"` // kernels that failed their self-test in a run
}

// cacheReport is what is kept of the device between runs.
type cacheReport struct {
	Path          string            `json:"path"` // "": nothing is kept
	Bytes         int64             `json:"bytes"`
	Files         int               `json:"files"`
	PipelineBytes int64             `json:"pipeline_bytes"` // of this device and driver
	Tested        int               `json:"tested"`         // pipelines
	Failed        map[string]string `json:"failed"`         // kernel: why
	Crashed       map[string]string `json:"crashed"`        // kernel: how the driver ended a run in it
	Tuned         int               `json:"tuned"`          // choices in use
	TunedAt       *time.Time        `json:"tuned_at"`       // the newest of them; null: none
	Stale         string            `json:"stale,omitempty"`
}

// keptProbe tells which kernels steps on the tested device use, and what earlier runs kept of the device.
type keptProbe struct {
	found    *findings
	device   *testedDevice
	log      *slog.Logger
	folder   *cache.Folder // nil: nothing is kept
	variants []variantReport
	cache    *cacheReport // nil: the device was not examined
}

// examine tells both.
func (k *keptProbe) examine() {
	dev := k.device.open(vk.DeviceOptions{})
	if dev == nil {
		return
	}
	defer k.device.close(dev)
	all, err := kernels.New(dev, kernels.Options{Logger: k.log, Cache: k.folder, Test: selftest.Prove})
	if err != nil {
		k.found.fail(err)
		return
	}
	defer all.Close()
	k.found.heading("Kernels on device %d", k.device.chosen.Index)
	for _, c := range all.Choices() {
		k.variant(c)
	}
	k.examineCache(dev, all)
	k.found.blank()
}

func (k *keptProbe) variant(c kernels.Choice) {
	r := variantReport{Op: c.Op, Variant: c.Variant, When: c.When, Used: c.Lacks == "", Lacks: c.Lacks, Failed: c.Failed}
	k.variants = append(k.variants, r)
	text := c.When
	switch {
	case c.Lacks != "":
		text = "not used: the device lacks " + c.Lacks
	case text == "":
		text = "else"
	}
	fmt.Fprintf(k.found.out, "     %-12s %-6s %s\n", c.Op, c.Variant, text)
	if len(c.Failed) > 0 {
		fmt.Fprintf(k.found.out, "     %-12s %-6s FAILED: %s\n", "", "", strings.Join(c.Failed, ", "))
	}
}

// examineCache tells what is kept, and warns of kernels that earlier runs gave up.
func (k *keptProbe) examineCache(dev *vk.Device, all *kernels.Kernels) {
	r := cacheReport{Path: k.folder.Path(), Failed: map[string]string{}, Crashed: map[string]string{}}
	k.cache = &r
	if k.folder == nil {
		k.found.field("cache", "none: kernels are compiled and tested in every run")
		return
	}
	for _, f := range k.folder.Files() {
		r.Files, r.Bytes = r.Files+1, r.Bytes+f.Bytes
	}
	if data, err := k.folder.Load(kernels.KindPipelines, kernels.DeviceKey(dev.Physical)); err == nil {
		r.PipelineBytes = int64(len(data))
	}
	results, _ := all.Tested()
	for _, t := range results {
		if r.Tested++; t.Error != "" {
			r.Failed[t.Kernel] = t.Error
		}
	}
	k.found.field("cache", "%s: %s in %d %s, compiled for this driver %s", tilde(r.Path), formatSize(r.Bytes), r.Files, plural(r.Files, "file"), formatSize(r.PipelineBytes))
	k.found.field("tested", "%d %s at their first use, %d %s failed", r.Tested, plural(r.Tested, "pipeline"), len(r.Failed), plural(len(r.Failed), "kernel"))
	for _, name := range sortedKeys(r.Failed) {
		k.found.warn(fmt.Sprintf("kernel %s failed its self-test in a run, so another is used: %s", name, r.Failed[name]),
			"update the driver; leat doctor --retry tries it again")
	}
	k.crashes(all, &r)
	k.tuneState(dev, &r)
}

// crashes names the kernels that the driver ended a run in.
func (k *keptProbe) crashes(all *kernels.Kernels, r *cacheReport) {
	for _, c := range all.Crashes() {
		r.Crashed[c.Kernel] = c.Why
	}
	for _, name := range sortedKeys(r.Crashed) {
		instead := "no other stands in for it"
		if kernels.HasStandIn(name) {
			instead = "another is used"
		}
		k.found.field("crashed", "%s", name)
		k.found.warn(fmt.Sprintf("kernel %s is not used, %s: %s", name, instead, r.Crashed[name]), "update the driver; leat doctor --retry tries it again")
	}
}

// retry forgets which kernels crashed or failed in earlier runs.
func (k *keptProbe) retry() {
	if k.device.chosen == nil {
		return
	}
	if err := kernels.Retry(k.folder, k.device.chosen); err != nil {
		k.found.fail(fmt.Errorf("try kernels again: %w", err))
	}
}

func (k *keptProbe) tuneState(dev *vk.Device, r *cacheReport) {
	t, err := kernels.LoadTuned(k.folder, dev)
	switch {
	case err != nil:
		r.Stale = err.Error()
	case t != nil && t.Kernels != kernels.TableKey(dev):
		r.Stale = "of other kernels"
	case t != nil:
		r.Tuned = t.Len()
		for _, at := range tunedTimes(t) {
			if r.TunedAt == nil || at.After(*r.TunedAt) {
				r.TunedAt = &at
			}
		}
	}
	switch {
	case r.Stale != "":
		k.found.field("tuned", "not used: %s; leat doctor --tune MODEL measures anew", r.Stale)
	case r.Tuned == 0:
		k.found.field("tuned", "nothing: leat doctor --tune MODEL measures what is fastest")
	default:
		k.found.field("tuned", "%d %s, %s", r.Tuned, plural(r.Tuned, "choice"), r.TunedAt.Format(time.DateOnly))
	}
}

func tunedTimes(t *kernels.Tuned) (times []time.Time) {
	for _, p := range t.Products {
		times = append(times, p.Measured)
	}
	for _, o := range t.Outputs {
		times = append(times, o.Measured)
	}
	for _, s := range t.CMTiles {
		times = append(times, s.Measured)
	}
	return times
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
