package vk

import (
	"errors"
	"strings"
	"testing"
)

func testDevice(index int, name string, t DeviceType, bytes int64) *PhysicalDevice {
	return &PhysicalDevice{
		Index: index, Name: name, Type: t, APIVersion: MakeVersion(1, 3, 0),
		UUID:     strings.Repeat(string(rune('a'+index)), 8),
		Heaps:    []Heap{{Bytes: bytes, DeviceLocal: true}, {Bytes: 1 << 40}},
		Features: Features{BufferDeviceAddress: true, TimelineSemaphore: true},
	}
}

func TestPick(t *testing.T) {
	old := testDevice(4, "Ancient 9000", Discrete, 1<<40)
	old.APIVersion = MakeVersion(1, 1, 0)
	devices := []*PhysicalDevice{
		testDevice(0, "llvmpipe", CPU, 64<<30),
		testDevice(1, "Radeon 8060S", Integrated, 96<<30),
		testDevice(2, "GeForce RTX 4060", Discrete, 8<<30),
		testDevice(3, "GeForce RTX 4090", Discrete, 24<<30),
		old,
	}
	for _, c := range []struct {
		name, sel string
		from      []*PhysicalDevice
		want      int
	}{
		{"most memory of the discrete", "", devices, 3},
		{"integrated before cpu", "", devices[:2], 1},
		{"cpu if there is nothing else", "", devices[:1], 0},
		{"index", "2", devices, 2},
		{"an index is no part of a name", "4", devices, 4},
		{"uuid", "BBBBBBBB", devices, 1},
		{"part of a name", "radeon", devices, 1},
		{"best that the name fits", "geforce", devices, 3},
		{"unfit devices last", "0", devices, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := pick(c.from, c.sel)
			if err != nil {
				t.Fatal(err)
			}
			if p.Index != c.want {
				t.Errorf("picked %d (%s), want %d", p.Index, p.Name, c.want)
			}
		})
	}
	for _, sel := range []string{"9", "-1", "voodoo"} {
		_, err := pick(devices, sel)
		var e *SelectError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), sel) || !strings.Contains(e.Hint(), "3: GeForce RTX 4090") {
			t.Errorf("pick %q: error %v, want one that names it and hints at the devices", sel, err)
		}
	}
}

func TestQueueFamilies(t *testing.T) {
	h100 := []QueueFamily{
		{Count: 16, Graphics: true, Compute: true, Transfer: true},
		{Count: 2, Transfer: true},
		{Count: 8, Compute: true, Transfer: true},
		{Count: 7, Transfer: true, Video: true},
		{Count: 1, Transfer: true, OpticalFlow: true},
	}
	for _, c := range []struct {
		name              string
		families          []QueueFamily
		compute, transfer int
	}{
		{"NVIDIA", h100, 2, 1},
		{"no copy engine but video's", append(h100[:1:1], h100[3:]...), 0, -1},
		{"one family", h100[:1], 0, -1},
		{"no compute", h100[1:2], -1, 0},
		{"an empty family", []QueueFamily{{Compute: true}, {Count: 1, Compute: true, Transfer: true}}, 1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			compute, transfer := (&PhysicalDevice{QueueFamilies: c.families}).families()
			if compute != c.compute || transfer != c.transfer {
				t.Errorf("compute %d, transfer %d, want %d and %d", compute, transfer, c.compute, c.transfer)
			}
		})
	}
}

func TestFeatureError(t *testing.T) {
	ok := testDevice(0, "Good", Discrete, 1)
	if err := ok.serves(0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(p *PhysicalDevice)
		want   string
	}{
		{"old", func(p *PhysicalDevice) { p.APIVersion = MakeVersion(1, 1, 126) }, "Vulkan 1.2 (it has 1.1.126)"},
		{"no addresses", func(p *PhysicalDevice) { p.Features.BufferDeviceAddress = false }, "bufferDeviceAddress"},
		{"no timelines", func(p *PhysicalDevice) { p.Features = Features{} }, "bufferDeviceAddress and timelineSemaphore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testDevice(0, "Poor", Discrete, 1)
			c.change(p)
			err := p.serves(0)
			var e *FeatureError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), "lacks "+c.want) || e.Hint() == "" {
				t.Errorf("error %v, want one that says it lacks %s, with a hint", err, c.want)
			}
		})
	}
}

func TestRank(t *testing.T) {
	const local, visible, coherent, cached = 1, 2, 4, 8
	types := func(list ...[2]int) (m []MemoryType) {
		for _, l := range list {
			m = append(m, MemoryType{Heap: l[0], DeviceLocal: l[1]&local != 0, HostVisible: l[1]&visible != 0, HostCoherent: l[1]&coherent != 0, HostCached: l[1]&cached != 0, special: l[1]&16 != 0})
		}
		return m
	}
	nvidia := &PhysicalDevice{
		Heaps:       []Heap{{Bytes: 80 << 30, DeviceLocal: true}, {Bytes: 96 << 30}},
		MemoryTypes: types([2]int{1, 0}, [2]int{0, local}, [2]int{1, visible | coherent}, [2]int{1, visible | coherent | cached}, [2]int{0, local | visible | coherent}),
	}
	smallBAR := &PhysicalDevice{
		Heaps:       []Heap{{Bytes: 8 << 30, DeviceLocal: true}, {Bytes: 32 << 30}, {Bytes: 256 << 20, DeviceLocal: true}},
		MemoryTypes: types([2]int{2, local | visible | coherent}, [2]int{0, local}, [2]int{1, visible | coherent}, [2]int{0, local | 16}),
	}
	splitUMA := &PhysicalDevice{
		Features:    Features{UMA: true},
		Heaps:       []Heap{{Bytes: 10 << 30}, {Bytes: 20 << 30, DeviceLocal: true}, {Bytes: 1 << 30, DeviceLocal: true}},
		MemoryTypes: types([2]int{1, local}, [2]int{2, local}, [2]int{0, visible | coherent}, [2]int{1, local | visible | coherent}, [2]int{0, visible | coherent | cached}),
	}
	lavapipe := &PhysicalDevice{
		Features:    Features{UMA: true},
		Heaps:       []Heap{{Bytes: 2 << 30, DeviceLocal: true}},
		MemoryTypes: types([2]int{0, local | visible | coherent | cached}),
	}
	for _, c := range []struct {
		name  string
		p     *PhysicalDevice
		class MemoryClass
		bits  uint32
		want  []int
	}{
		{"nvidia device", nvidia, DeviceLocal, ^uint32(0), []int{1, 4}},
		{"nvidia upload", nvidia, Upload, ^uint32(0), []int{2, 3}},
		{"nvidia readback", nvidia, Readback, ^uint32(0), []int{3, 2}},
		{"nvidia, types not allowed", nvidia, DeviceLocal, 1 << 4, []int{4}},
		{"small BAR device", smallBAR, DeviceLocal, ^uint32(0), []int{1, 0}},
		{"small BAR upload", smallBAR, Upload, ^uint32(0), []int{2}},
		{"split UMA device", splitUMA, DeviceLocal, ^uint32(0), []int{0, 3, 1}},
		{"split UMA upload", splitUMA, Upload, ^uint32(0), []int{2, 3, 4}},
		{"split UMA readback", splitUMA, Readback, ^uint32(0), []int{4, 3, 2}},
		{"lavapipe device", lavapipe, DeviceLocal, 1, []int{0}},
		{"lavapipe upload", lavapipe, Upload, 1, []int{0}},
		{"nvidia mapped", nvidia, Mapped, ^uint32(0), []int{4}},
		{"small BAR mapped", smallBAR, Mapped, ^uint32(0), []int{0}},
		{"split UMA mapped", splitUMA, Mapped, ^uint32(0), []int{3}},
		{"lavapipe mapped", lavapipe, Mapped, 1, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.p.rank(c.bits, c.class)
			if len(got) != len(c.want) {
				t.Fatalf("types %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("types %v, want %v", got, c.want)
				}
			}
		})
	}
}
