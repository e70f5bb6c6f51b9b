package main

import (
	"fmt"
	"go/constant"
	"maps"
	"slices"
	"strings"
)

// comparison is what two bindings have in common.
type comparison struct {
	their                       *facts
	constants, byName           int // compared; those with the very same name
	ambiguous                   int // one name of theirs for several of ours
	structs, fields             int // compared
	sharedNames, sharedCommands int // theirs that we have too
	excused                     []string
	wrong                       []string
}

// excuses are the structs that vulkan-go has from Vulkan 1.1.88, before their
// extensions changed them. Against goki, of 1.3.239, nothing needs one.
var excuses = map[string]string{
	"PhysicalDevicePCIBusInfoPropertiesEXT":   "VK_EXT_pci_bus_info 2 made its numbers 32 bits wide",
	"PhysicalDeviceVulkanMemoryModelFeatures": "VK_KHR_vulkan_memory_model 3 added a field",
}

func compare(ours, their *facts) *comparison {
	c := &comparison{their: their}
	c.compareConstants(ours, their)
	c.compareLayouts(ours, their)
	c.sharedNames = shared(ours.names, their.names)
	c.sharedCommands = shared(ours.commands, their.commands)
	return c
}

func shared(a, b map[string]bool) (n int) {
	for name := range a {
		if a[name] && b[name] {
			n++
		}
	}
	return n
}

func (c *comparison) complain(format string, a ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, a...))
}

// compareConstants matches constants of one name, then those whose names differ
// in case and in the vendor at the end only: they write ErrorOutOfDate for our
// ErrorOutOfDateKHR. A short name that stands for two values of ours, or of
// theirs, is left out.
func (c *comparison) compareConstants(ours, their *facts) {
	ourValues, theirValues := byPlainName(ours.constants), byPlainName(their.constants)
	for _, name := range slices.Sorted(maps.Keys(ours.constants)) {
		our := ours.constants[name]
		if value, ok := their.constants[name]; ok {
			c.constants++
			c.byName++
			if !same(our, value) {
				c.complain("constant %s is %v, and %v in %s", name, our, value, their.path)
			}
			continue
		}
		plain := plainName(name)
		theirs := theirValues[plain]
		switch {
		case len(theirs) == 0:
		case len(theirs) > 1 || len(ourValues[plain]) > 1:
			c.ambiguous++
		default:
			c.constants++
			if !same(our, theirs[0]) {
				c.complain("constant %s is %v, and %v in %s under a name like it", name, our, theirs[0], their.path)
			}
		}
	}
}

// byPlainName has the different values under each plain name.
func byPlainName(constants map[string]constant.Value) map[string][]constant.Value {
	m := map[string][]constant.Value{}
	for name, value := range constants {
		plain := plainName(name)
		if !slices.ContainsFunc(m[plain], func(v constant.Value) bool { return same(v, value) }) {
			m[plain] = append(m[plain], value)
		}
	}
	return m
}

var vendors = []string{"khr", "ext", "nv", "amd", "intel", "arm", "google", "qcom", "valve", "huawei", "fuchsia", "mesa", "android", "img", "ggp", "lunarg"}

// plainName is a name in lower case without the vendor at its end.
func plainName(name string) string {
	name = strings.ToLower(name)
	for _, vendor := range vendors {
		if s, ok := strings.CutSuffix(name, vendor); ok {
			return s
		}
	}
	return name
}

// same compares values; strings without the zero byte that some end with.
func same(a, b constant.Value) bool {
	if a.Kind() == constant.String && b.Kind() == constant.String {
		return strings.TrimRight(constant.StringVal(a), "\x00") == strings.TrimRight(constant.StringVal(b), "\x00")
	}
	return a.Kind() == b.Kind() && a.ExactString() == b.ExactString()
}

// compareLayouts holds every struct that both have against the other. A struct
// that became part of Vulkan may still have its extension's name with them.
func (c *comparison) compareLayouts(ours, their *facts) {
	for _, name := range slices.Sorted(maps.Keys(ours.layouts)) {
		our := ours.layouts[name]
		for _, suffix := range []string{"", "KHR", "EXT"} {
			l, ok := their.layouts[name+suffix]
			if !ok {
				continue
			}
			if reason := excuses[name]; reason != "" && their.path == vulkanGoPath {
				c.excused = append(c.excused, fmt.Sprintf("Vk%s: %s", name, reason))
				break
			}
			c.structs++
			c.compareLayout("Vk"+name, our, l)
			break
		}
	}
}

func (c *comparison) compareLayout(name string, our, their layout) {
	if our.size != their.size {
		c.complain("%s has %d bytes, and %d in %s", name, our.size, their.size, c.their.path)
	}
	for _, f := range slices.Sorted(maps.Keys(our.fields)) {
		o, t := our.fields[f], their.fields[f]
		if _, ok := their.fields[f]; !ok {
			c.complain("%s.%s is not in %s", name, f, c.their.path)
			continue
		}
		c.fields++
		if o != t {
			c.complain("%s.%s is %d bytes at %d, and %d bytes at %d in %s", name, f, o.size, o.offset, t.size, t.offset, c.their.path)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(their.fields)) {
		if _, ok := our.fields[f]; !ok {
			c.complain("%s.%s of %s is missing", name, f, c.their.path)
		}
	}
}
