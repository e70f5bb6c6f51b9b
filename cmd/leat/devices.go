package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
	"github.com/spf13/cobra"

	"leat/vk"
	"leat/vk/mem"
)

func init() { commands = append(commands, newDevicesCmd) }

func newDevicesCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the Vulkan devices and the host's CPU",
		Long: `List what this machine can compute with: each Vulkan device with its driver, memory, queues
and the features that matter here, then the host's CPU.

The index, the UUID or a part of the name is what --device takes. The device marked
"default" is used without it.`,
		Example: "  leat devices\n  leat devices --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			report, err := readDevices(a)
			if asJSON {
				if jsonErr := a.printJSON(report); jsonErr != nil {
					return jsonErr
				}
			} else {
				report.print(a.out)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// devicesReport is what --json prints.
type devicesReport struct {
	Devices []deviceReport `json:"devices"`
	CPU     cpuReport      `json:"cpu"`
}

type deviceReport struct {
	Index           int             `json:"index"`
	Name            string          `json:"name"`
	Default         bool            `json:"default"`
	Type            string          `json:"type"`
	UUID            string          `json:"uuid"`
	Driver          string          `json:"driver"`
	DriverInfo      string          `json:"driver_info"`
	API             string          `json:"api_version"`
	VendorID        uint32          `json:"vendor_id"`
	DeviceID        uint32          `json:"device_id"`
	DriverVersion   uint32          `json:"driver_version"`
	Heaps           []heapReport    `json:"heaps"`
	MemoryTypes     []memoryReport  `json:"memory_types"`
	Queues          []queueReport   `json:"queue_families"`
	SubgroupSize    int             `json:"subgroup_size"`
	SubgroupMin     int             `json:"subgroup_min,omitempty"`
	SubgroupMax     int             `json:"subgroup_max,omitempty"`
	SharedBytes     int             `json:"shared_bytes"`
	MaxAllocBytes   int64           `json:"max_allocation_bytes"`
	MaxPushBytes    int             `json:"max_push_constant_bytes"`
	MaxInvocations  uint32          `json:"max_workgroup_invocations"`
	HostImportAlign int64           `json:"host_import_alignment,omitempty"`
	TickNanos       float64         `json:"timestamp_period_ns"`
	Features        map[string]bool `json:"features"`
}

type heapReport struct {
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
	UsedBytes   int64 `json:"used_bytes"`
	DeviceLocal bool  `json:"device_local"`
}

type memoryReport struct {
	Heap int    `json:"heap"`
	Kind string `json:"kind"` // "device local, host visible"
}

type queueReport struct {
	Count         int  `json:"count"`
	Graphics      bool `json:"graphics"`
	Compute       bool `json:"compute"`
	Transfer      bool `json:"transfer"`
	TimestampBits int  `json:"timestamp_bits"`
}

type cpuReport struct {
	Name           string   `json:"name"`
	Cores          int      `json:"cores"`           // that this process may use: by its affinity, and by the quota of its cgroup
	MachineCores   int      `json:"machine_cores"`   // 0: unknown
	MachineThreads int      `json:"machine_threads"` // 0: unknown
	SIMD           []string `json:"simd"`
	RAMBytes       int64    `json:"ram_bytes"`
	AvailableBytes int64    `json:"ram_available_bytes"`
}

// deviceFeatures are those that decide which kernels and which way of streaming a device gets.
var deviceFeatures = []struct {
	key, label string
	has        func(p *vk.PhysicalDevice) bool
}{
	{"buffer_device_address", "buffer addresses", func(p *vk.PhysicalDevice) bool { return p.Features.BufferDeviceAddress }},
	{"timeline_semaphore", "timelines", func(p *vk.PhysicalDevice) bool { return p.Features.TimelineSemaphore }},
	{"float16", "fp16", func(p *vk.PhysicalDevice) bool { return p.Features.Float16 }},
	{"int8", "int8", func(p *vk.PhysicalDevice) bool { return p.Features.Int8 }},
	{"int_dot_product", "int8 dot product", func(p *vk.PhysicalDevice) bool { return p.Features.IntDotProduct }},
	{"storage_8bit", "8-bit storage", func(p *vk.PhysicalDevice) bool { return p.Features.Storage8 }},
	{"storage_16bit", "16-bit storage", func(p *vk.PhysicalDevice) bool { return p.Features.Storage16 }},
	{"int64", "int64", func(p *vk.PhysicalDevice) bool { return p.Features.Int64 }},
	{"subgroup_size_control", "subgroup size control", func(p *vk.PhysicalDevice) bool { return p.Features.SubgroupSizeControl }},
	{"conditional_rendering", "conditional dispatches", func(p *vk.PhysicalDevice) bool { return p.Features.ConditionalRendering }},
	{"cooperative_matrix", "cooperative matrix", func(p *vk.PhysicalDevice) bool { return p.Features.CooperativeMatrix }},
	{"transfer_queue", "dedicated transfer queue", hasTransferQueue},
	{"host_import", "host memory import", func(p *vk.PhysicalDevice) bool { return p.Features.HostImport }},
	{"memory_budget", "memory budget", func(p *vk.PhysicalDevice) bool { return p.Features.MemoryBudget }},
	{"memory_priority", "memory priority", func(p *vk.PhysicalDevice) bool { return p.Features.MemoryPriority }},
	{"pageable_device_local", "pageable VRAM", func(p *vk.PhysicalDevice) bool { return p.Features.PageableDeviceLocal }},
	{"rebar", "resizable BAR", func(p *vk.PhysicalDevice) bool { return p.Features.ReBAR }},
	{"uma", "one memory with the CPU", func(p *vk.PhysicalDevice) bool { return p.Features.UMA }},
}

func hasTransferQueue(p *vk.PhysicalDevice) bool {
	for _, q := range p.QueueFamilies {
		if q.Transfer && !q.Compute && !q.Graphics && !q.Video && !q.OpticalFlow {
			return true
		}
	}
	return false
}

// readDevices fills in the CPU even where Vulkan fails: it is part of what a bug report needs.
func readDevices(a *app) (*devicesReport, error) {
	report := &devicesReport{Devices: []deviceReport{}, CPU: readCPU()}
	var err error
	if report.CPU.RAMBytes, report.CPU.AvailableBytes, err = mem.RAM(); err != nil {
		a.log.Warn("host memory is unknown", "err", err)
	}
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		return report, explainLoader(err)
	}
	defer instance.Close()
	best, err := instance.Pick("")
	if err != nil {
		return report, fmt.Errorf("choose a device: %w", err)
	}
	for _, p := range instance.PhysicalDevices() {
		d := describe(p)
		d.Default = p == best
		report.Devices = append(report.Devices, d)
	}
	return report, nil
}

func describe(p *vk.PhysicalDevice) deviceReport {
	d := deviceReport{
		Index: p.Index, Name: p.Name, Type: p.Type.String(), UUID: p.UUID,
		Driver: p.DriverName, DriverInfo: p.DriverInfo, API: p.APIVersion.String(),
		VendorID: p.VendorID, DeviceID: p.DeviceID, DriverVersion: p.DriverVersion,
		SubgroupSize: p.Limits.Subgroup, SubgroupMin: p.Limits.SubgroupMin, SubgroupMax: p.Limits.SubgroupMax,
		SharedBytes: p.Limits.MaxSharedBytes, MaxAllocBytes: p.Limits.MaxAllocationBytes,
		MaxPushBytes: p.Limits.MaxPushConstants, MaxInvocations: p.Limits.MaxWorkgroupInvocations,
		HostImportAlign: p.Limits.HostImportAlign, TickNanos: p.Limits.TimestampPeriod,
		Features: map[string]bool{},
	}
	for _, t := range p.MemoryTypes {
		d.MemoryTypes = append(d.MemoryTypes, memoryReport{t.Heap, t.String()})
	}
	for _, h := range p.Heaps {
		d.Heaps = append(d.Heaps, heapReport{h.Bytes, h.BudgetBytes, h.UsedBytes, h.DeviceLocal})
	}
	for _, q := range p.QueueFamilies {
		d.Queues = append(d.Queues, queueReport{q.Count, q.Graphics, q.Compute, q.Transfer, q.TimestampBits})
	}
	for _, f := range deviceFeatures {
		d.Features[f.key] = f.has(p)
	}
	return d
}

func readCPU() cpuReport {
	cpu := &cpuid.CPU
	r := cpuReport{Name: strings.Join(strings.Fields(cpu.BrandName), " "), Cores: usableCores(runtime.NumCPU(), quota()), MachineCores: cpu.PhysicalCores, MachineThreads: cpu.LogicalCores, SIMD: []string{}}
	if r.Name == "" {
		r.Name = "unknown"
	}
	for _, f := range []struct {
		label string
		id    cpuid.FeatureID
	}{
		{"AVX2", cpuid.AVX2}, {"F16C", cpuid.F16C}, {"AVX-VNNI", cpuid.AVXVNNI},
		{"AVX-512", cpuid.AVX512F}, {"AVX-512-VNNI", cpuid.AVX512VNNI}, {"AVX-512-BF16", cpuid.AVX512BF16},
		{"AVX-512-FP16", cpuid.AVX512FP16}, {"AMX-INT8", cpuid.AMXINT8}, {"AMX-BF16", cpuid.AMXBF16},
		{"NEON", cpuid.ASIMD}, {"dot product", cpuid.ASIMDDP}, {"I8MM", cpuid.I8MM}, {"BF16", cpuid.BF16},
		{"SVE", cpuid.SVE}, {"SVE2", cpuid.SVE2},
	} {
		if cpu.Has(f.id) {
			r.SIMD = append(r.SIMD, f.label)
		}
	}
	return r
}

// usableCores is how many cores a process can keep busy that may run on so many, for a part of the time; quota 0 is no limit.
func usableCores(allowed int, quota float64) int {
	if quota > 0 {
		allowed = min(allowed, int(math.Ceil(quota)))
	}
	return max(1, allowed)
}

// print writes the report for people.
func (r *devicesReport) print(w io.Writer) {
	for _, d := range r.Devices {
		d.print(w, false)
	}
	r.CPU.print(w)
}

func (c *cpuReport) print(w io.Writer) {
	fmt.Fprintf(w, "CPU  %s\n", c.Name)
	cores := fmt.Sprintf("%d for this process", c.Cores)
	if c.MachineCores > 0 {
		cores += fmt.Sprintf(", of %d with %d threads", c.MachineCores, c.MachineThreads)
	}
	printField(w, "cores", cores)
	printField(w, "SIMD", strings.Join(c.SIMD, ", "))
	if c.RAMBytes > 0 {
		printField(w, "RAM", fmt.Sprintf("%s, %s available", formatSize(c.RAMBytes), formatSize(c.AvailableBytes)))
	}
}

// print writes a device for people; all adds what is for a bug report alone.
func (d *deviceReport) print(w io.Writer, all bool) {
	mark := ""
	if d.Default {
		mark = ", default"
	}
	fmt.Fprintf(w, "%-3d  %s (%s%s)\n", d.Index, d.Name, d.Type, mark)
	printField(w, "driver", fmt.Sprintf("%s %s, Vulkan %s", d.Driver, d.DriverInfo, d.API))
	printField(w, "UUID", d.UUID)
	if all {
		printField(w, "ids", fmt.Sprintf("vendor %#04x, device %#04x, driver version %#x", d.VendorID, d.DeviceID, d.DriverVersion))
	}
	for _, h := range d.Heaps {
		label := "host heap"
		if h.DeviceLocal {
			label = "VRAM"
		}
		text := fmt.Sprintf("%s, budget %s", formatSize(h.Bytes), formatSize(h.BudgetBytes))
		if all {
			text += ", used " + formatSize(h.UsedBytes)
		}
		printField(w, label, text)
	}
	for i, t := range d.MemoryTypes {
		if all {
			printField(w, fmt.Sprintf("memory %d", i), strings.TrimSuffix(fmt.Sprintf("heap %d, %s", t.Heap, t.Kind), ", "))
		}
	}
	for i, q := range d.Queues {
		printField(w, fmt.Sprintf("queues %d", i), fmt.Sprintf("%d x %s", q.Count, q.kinds()))
	}
	subgroup := fmt.Sprintf("%d", d.SubgroupSize)
	if d.SubgroupMax > 0 {
		subgroup += fmt.Sprintf(" (%d to %d)", d.SubgroupMin, d.SubgroupMax)
	}
	printField(w, "subgroup", subgroup)
	if all {
		printField(w, "limits", fmt.Sprintf("allocation %s, shared %s, workgroup %d, push constants %d B, import on %d B, tick %g ns",
			formatSize(d.MaxAllocBytes), formatSize(int64(d.SharedBytes)), d.MaxInvocations, d.MaxPushBytes, d.HostImportAlign, d.TickNanos))
	}
	printField(w, "has", d.list(true))
	printField(w, "lacks", d.list(false))
	fmt.Fprintln(w)
}

func (q queueReport) kinds() string {
	var kinds []string
	for _, kind := range []struct {
		has  bool
		name string
	}{{q.Graphics, "graphics"}, {q.Compute, "compute"}, {q.Transfer, "transfer"}} {
		if kind.has {
			kinds = append(kinds, kind.name)
		}
	}
	return strings.Join(append(kinds, fmt.Sprintf("%d-bit timestamps", q.TimestampBits)), ", ")
}

// list names the features that are, or aren't, there.
func (d *deviceReport) list(there bool) string {
	var labels []string
	for _, f := range deviceFeatures {
		if d.Features[f.key] == there {
			labels = append(labels, f.label)
		}
	}
	return strings.Join(labels, ", ")
}

// printField prints one labelled line, wrapped between a list's items so that it fits a
// terminal of 80 columns; an empty one isn't printed.
func printField(w io.Writer, label, text string) {
	const columns, indent = 80, 15
	for len(text) > 0 {
		line := text
		if len(line) > columns-indent {
			if cut := strings.LastIndex(line[:columns-indent], ", "); cut > 0 {
				line = line[:cut+1]
			}
		}
		text = strings.TrimPrefix(text[len(line):], " ")
		fmt.Fprintf(w, "     %-10s%s\n", label, line)
		label = ""
	}
}
