package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"leat/vk/bindcmp/probe"
)

// program is one binding's, which puts it through the probe.
type program struct {
	name, dir string
	cgo       string // CGO_ENABLED it is built with
	crashes   bool   // takes part in the crash test: C loops have no collector to fear
	path      string
}

func programs() []*program {
	return []*program{
		{name: "C loop", dir: "byc", cgo: "1"},
		{name: "leat", dir: "byleat", cgo: "0", crashes: true},
		{name: "goki", dir: "bygoki", cgo: "1", crashes: true},
		{name: "vulkan-go", dir: "byvulkango", cgo: "1", crashes: true},
	}
}

// build makes the programs in a folder.
func build(folder string, all []*program) error {
	for _, p := range all {
		p.path = filepath.Join(folder, p.dir)
		cmd := exec.Command("go", "build", "-o", p.path, "./"+p.dir)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+p.cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p.dir, err, out)
		}
	}
	return nil
}

// report runs the program. Its error output is shortened: a Go crash is long.
func (p *program) report(args ...string) (*probe.Report, error) {
	cmd := exec.Command(p.path, args...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w\n%.2000s", p.dir, err, talk.String())
	}
	report := &probe.Report{}
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		return nil, fmt.Errorf("read what %s printed: %w", p.dir, err)
	}
	return report, nil
}

func runBindings(w io.Writer, crash time.Duration) (wrong []string, err error) {
	folder, err := os.MkdirTemp("", "bindcmp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	all := programs()
	if err := build(folder, all); err != nil {
		return nil, err
	}
	reports := map[*program]*probe.Report{}
	for range passes {
		for _, p := range all {
			r, err := p.report()
			if err != nil {
				return nil, err
			}
			reports[p] = faster(reports[p], r)
		}
	}
	fmt.Fprintf(w, "\n## One dispatch each\n\nDevice: %s. %d floats of `3*a + b` through descriptors, compared bit by bit with Go's.\n\n",
		reports[all[0]].Device, probe.Count)
	for _, p := range all[1:] {
		verdict := "equal"
		if what := judge(reports[p]); what != "" {
			verdict = what
			wrong = append(wrong, p.name+": "+what)
		}
		fmt.Fprintf(w, "- %s: %s\n", p.name, verdict)
	}
	printCosts(w, all, reports)
	if crash > 0 {
		crashAll(w, all, crash)
	}
	return wrong, nil
}

// passes are taken in turns, and the best of each number is kept: a neighbour's
// burst then spoils no single column.
const passes = 3

func faster(old, r *probe.Report) *probe.Report {
	if old == nil {
		return r
	}
	for i := range r.Costs {
		r.Costs[i].NsPerCall = min(r.Costs[i].NsPerCall, old.Costs[i].NsPerCall)
	}
	return r
}

// judge is empty if the kernel did what it should.
func judge(r *probe.Report) string {
	want := probe.Want()
	if len(r.Output) != len(want) {
		return fmt.Sprintf("the kernel gave %d floats, want %d", len(r.Output), len(want))
	}
	for i := range want {
		if r.Output[i] != want[i] {
			return fmt.Sprintf("the kernel's float %d has bits %#x, want %#x", i, r.Output[i], want[i])
		}
	}
	return ""
}

// printCosts has a row for each case and a column for each layer.
func printCosts(w io.Writer, all []*program, reports map[*program]*probe.Report) {
	var names, layers []string
	costs := map[[2]string]probe.Cost{}
	for _, p := range all[1:] {
		names, layers = collect(reports[p], names, layers, costs)
	}
	_, layers = collect(reports[all[0]], names, layers, costs)
	slices.Sort(names) // cases of one call stand together
	rows := [][]string{append([]string{"ns per call (Go allocations, bytes)"}, layers...)}
	for _, name := range names {
		row := []string{name}
		for _, layer := range layers {
			row = append(row, cell(costs, name, layer))
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(w, "\n## Costs\n\n")
	printTable(w, rows)
	fmt.Fprintf(w, `
Measured on %s, %s/%s, %d CPUs, %s: the best of three medians of 101 rounds of 512 calls (QueueSubmit: 128), one goroutine. The driver's work is
in every number; the C loop shows it, so a binding's own cost is the difference. Recorded calls go into a command buffer that is begun
anew each round and never submitted. The garbage collector runs between rounds only, so its work and the finalizers' are in no number;
C allocations are not counted. "leat raw" is the generated binding with CGO_ENABLED=0, "leat vk" the public layer above it, which checks
arguments, has no descriptors and always keeps its structs; its QueueSubmit takes a lock and brings a timeline structure along. leat calls the
driver's functions directly (vkGetDeviceProcAddr), as the C loop does; the other two go through the loader. Their reused structs send what they
held at their first use; "unsafe": such a struct points to freed memory, see -crash.
`, cpuName(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

func collect(r *probe.Report, names, layers []string, costs map[[2]string]probe.Cost) ([]string, []string) {
	for _, c := range r.Costs {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
		if !slices.Contains(layers, c.Layer) {
			layers = append(layers, c.Layer)
		}
		costs[[2]string{c.Name, c.Layer}] = c
	}
	return names, layers
}

func cell(costs map[[2]string]probe.Cost, name, layer string) string {
	c, ok := costs[[2]string{name, layer}]
	switch {
	case ok && layer == "C loop":
		return fmt.Sprintf("%.0f", c.NsPerCall)
	case ok:
		return fmt.Sprintf("%.0f (%.0f, %.0f)", c.NsPerCall, c.AllocsPerCall, c.GoBytes)
	case name == probe.UpdateSets+probe.Reused && layer != "leat vk":
		return "unsafe"
	}
	return "–"
}

// cpuName is the host's, on Linux.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return "an unnamed CPU"
}

// crashAll makes pipelines through each binding while the collector runs, and
// tells how it ended.
func crashAll(w io.Writer, all []*program, d time.Duration) {
	fmt.Fprintf(w, "\n## Pipelines made while the garbage collector runs\n\n`CreateComputePipelines` and `DestroyPipeline` in a loop, structs made for each call,\n"+
		"`runtime.GC()` in a loop in another goroutine, for %v or until the process dies.\n\n", d)
	crash := func(flags ...string) {
		for _, p := range all {
			if p.crashes {
				fmt.Fprintf(w, "- %s: %s\n", p.name, p.crash(flags...))
			}
		}
	}
	crash("-crash", d.String())
	fmt.Fprintf(w, "\n`UpdateDescriptorSets` with one kept `WriteDescriptorSet` and a new one in turns, `runtime.GC()` in between:\n\n")
	crash("-crash", d.String(), "-reuse")
}

func (p *program) crash(flags ...string) string {
	cmd := exec.Command(p.path, flags...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start).Round(100 * time.Millisecond)
	made := "no calls"
	for _, line := range strings.Split(talk.String(), "\n") {
		if n, ok := strings.CutPrefix(line, "calls survived: "); ok {
			made = n + " calls"
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Sprintf("no crash in %v, %s", took, made)
	}
	return fmt.Sprintf("**died after %v**, %s before: %s", took, made, cause(talk.String(), exit))
}

// cause is the first line of a crash that says what it was.
func cause(talk string, exit *exec.ExitError) string {
	for _, line := range strings.Split(talk, "\n") {
		if line != "" && !strings.HasPrefix(line, "calls survived: ") {
			return fmt.Sprintf("%s (%v)", line, exit)
		}
	}
	return exit.String()
}
