package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"leat/vk"
	"leat/vk/mem"
)

type systemReport struct {
	OS          string       `json:"os"`
	Kernel      string       `json:"kernel"`
	Environment []string     `json:"environment"` // what changes Vulkan's ways
	Nodes       []nodeReport `json:"device_nodes"`
}

// nodeReport is a file through which drivers reach a GPU.
type nodeReport struct {
	Path  string `json:"path"`
	Error string `json:"error,omitempty"` // why we may not use it
}

type loaderReport struct {
	Library    string        `json:"library"`
	File       string        `json:"file,omitempty"`
	Version    string        `json:"version"`
	Layers     []layerReport `json:"layers"`
	Extensions []string      `json:"extensions"`
}

type layerReport struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	SpecVersion string `json:"spec_version"`
}

// driverReport is a manifest that tells the loader of a driver.
type driverReport struct {
	Manifest string `json:"manifest"`
	Library  string `json:"library,omitempty"`
	API      string `json:"api_version,omitempty"`
	Error    string `json:"error,omitempty"` // why it does not load
}

// systemProbe tells what is known without a device: the program, the system, the CPU, Vulkan's loader and its drivers.
type systemProbe struct {
	found   *findings
	program versionInfo
	system  systemReport
	cpu     cpuReport
	loader  *loaderReport // nil: none
	drivers []driverReport
}

// examineProgram tells what runs, and on what.
func (p *systemProbe) examineProgram() {
	p.program = readVersion()
	p.found.heading("%s", p.program)
	p.system = systemReport{Environment: environment(os.Environ()), Nodes: deviceNodes()}
	p.system.OS, p.system.Kernel = readOS()
	p.found.field("system", "%s", p.system.OS)
	p.found.field("kernel", "%s", p.system.Kernel)
	for _, e := range p.system.Environment {
		p.found.field("set", "%s", e)
	}
	for _, n := range p.system.Nodes {
		p.found.field("node", "%s", strings.TrimSuffix(n.Path+": "+n.Error, ": "))
	}
	p.found.blank()
	p.cpu = readCPU()
	var err error
	if p.cpu.RAMBytes, p.cpu.AvailableBytes, err = mem.RAM(); err != nil {
		p.found.warn(err.Error(), "")
	}
	p.cpu.print(p.found.out)
	p.found.blank()
}

// environment picks the variables that change what Vulkan and its drivers do. Others stay
// out of a bug report.
func environment(env []string) []string {
	prefixes := []string{"VK_", "MESA_", "RADV_", "ANV_", "NVK_", "AMD_VULKAN_", "LP_", "LVP_", "GALLIUM_", "DRI_PRIME=", "__NV_", "__VK_", "NODEVICE_SELECT=",
		"CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES=", "MVK_", loaderEnv + "="}
	found := []string{}
	for _, e := range env {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e, p) }) {
			found = append(found, tilde(e))
		}
	}
	slices.Sort(found)
	return found
}

// tilde hides the user's name in paths.
func tilde(text string) string {
	home, err := os.UserHomeDir()
	if err != nil || len(home) < 2 {
		return text
	}
	return strings.ReplaceAll(text, home, "~")
}

// examineVulkan tells of the loader, and what it would load.
func (p *systemProbe) examineVulkan(loaderPath string) {
	p.found.heading("Vulkan")
	defer p.found.blank()
	p.examineLoader(loaderPath)
	p.examineDrivers()
}

func (p *systemProbe) examineLoader(path string) {
	l, err := vk.ReadLoader(path)
	if err != nil {
		p.found.field("loader", "none")
		p.found.fail(explainLoader(err))
		return
	}
	file := l.File
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	r := &loaderReport{Library: tilde(l.Library), File: tilde(file), Version: l.Version.String(), Layers: []layerReport{}, Extensions: l.Extensions}
	p.loader = r
	p.found.field("loader", "%s %s", r.Version, r.File)
	for _, layer := range l.Layers {
		r.Layers = append(r.Layers, layerReport{layer.Name, layer.Description, layer.SpecVersion.String()})
		p.found.field("layer", "%s %s", layer.Name, layer.SpecVersion)
	}
	if len(l.Layers) == 0 {
		p.found.field("layers", "none")
	}
}

func (p *systemProbe) examineDrivers() {
	if runtime.GOOS == "windows" {
		p.found.field("drivers", "in the registry, where the loader finds them") // by display adapter, in keys of several kinds
		return
	}
	for _, path := range driverManifests(os.LookupEnv, homeDir()) {
		r := readDriver(path)
		p.drivers = append(p.drivers, r)
		text := r.Manifest
		if r.API != "" {
			text += ", Vulkan " + r.API
		}
		p.found.field("driver", "%s", text)
		if r.Error != "" {
			p.found.field("", "%s", r.Error)
		}
	}
	if len(p.drivers) == 0 {
		p.found.field("drivers", "none found")
	}
}

// missingGPU says why there may be a GPU that Vulkan does not show. With a GPU at work, what
// is wrong with others is no problem.
func (p *systemProbe) missingGPU() {
	for _, n := range p.system.Nodes {
		if n.Error != "" {
			p.found.warn(fmt.Sprintf("the GPU at %s can't be used: %s", n.Path, n.Error), "join the groups it belongs to (often: sudo usermod -aG render,video $USER) and log in again")
		}
	}
	if name, _ := onlyDrivers(os.LookupEnv); name != "" {
		p.found.warn(name+" is set, so the loader looks nowhere else for drivers", "unset it, unless it is meant")
	}
	for _, r := range p.drivers {
		if r.Error != "" && !strings.Contains(r.Error, "wrong ELF class") { // of a 32-bit driver beside the 64-bit one
			p.found.warn(fmt.Sprintf("the driver of %s does not load: %s", r.Manifest, r.Error), "install the driver again, with the libraries that it misses")
		}
	}
}

// readDriver reads a manifest and tries its library.
func readDriver(path string) driverReport {
	r := driverReport{Manifest: tilde(path)}
	data, err := os.ReadFile(path)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	var m struct {
		ICD struct {
			LibraryPath string `json:"library_path"`
			APIVersion  string `json:"api_version"`
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		r.Error = "not a driver's manifest: " + err.Error()
		return r
	}
	library := m.ICD.LibraryPath
	if filepath.Base(library) != library && !filepath.IsAbs(library) {
		library = filepath.Join(filepath.Dir(path), library)
	}
	r.Library, r.API = tilde(library), m.ICD.APIVersion
	if err := vk.TryDriver(library); err != nil {
		r.Error = err.Error()
	}
	return r
}

// onlyDrivers is the variable that replaces the search for drivers, and its value. The
// loader takes an empty value for a list of none.
func onlyDrivers(lookup func(string) (string, bool)) (name, value string) {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		if value, ok := lookup(name); ok {
			return name, value
		}
	}
	return "", ""
}

// driverManifests looks where the Vulkan loader looks (its LoaderDriverInterface.md).
func driverManifests(lookup func(string) (string, bool), home string) []string {
	list := func(name, fallback string) []string {
		text, _ := lookup(name)
		if text == "" {
			text = fallback
		}
		return filepath.SplitList(text)
	}
	added := list("VK_ADD_DRIVER_FILES", "")
	if name, value := onlyDrivers(lookup); name != "" {
		return expand(append(filepath.SplitList(value), added...))
	}
	dirs := list("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	dirs = append(dirs, list("XDG_CONFIG_DIRS", "/etc/xdg")...)
	dirs = append(dirs, "/etc", "/opt/homebrew/etc", "/opt/homebrew/share")
	dirs = append(dirs, list("XDG_DATA_HOME", filepath.Join(home, ".local", "share"))...)
	dirs = append(dirs, list("XDG_DATA_DIRS", "/usr/local/share:/usr/share")...)
	found := added
	for _, dir := range dirs {
		found = append(found, filepath.Join(dir, "vulkan", "icd.d"))
	}
	return expand(found)
}

// expand puts the manifests of a folder in the folder's place; folders may be missing.
func expand(paths []string) []string {
	var files []string
	for _, p := range paths {
		inside, _ := filepath.Glob(filepath.Join(p, "*.json"))
		if len(inside) == 0 && strings.HasSuffix(p, ".json") {
			inside = []string{p}
		}
		for _, f := range inside {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

func homeDir() string {
	home, _ := os.UserHomeDir()
	return home
}
