package vk

import (
	"fmt"

	"leat/vk/internal/raw"
)

// Version is a packed Vulkan version.
type Version uint32

// MakeVersion packs a version.
func MakeVersion(major, minor, patch uint32) Version {
	return Version(major<<22 | minor<<12 | patch)
}

// String gives "1.3.230".
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}

// DeviceType is what kind of hardware a device is.
type DeviceType int

const (
	Other DeviceType = iota
	Integrated
	Discrete
	Virtual
	CPU
)

func (t DeviceType) String() string {
	switch t {
	case Integrated:
		return "integrated"
	case Discrete:
		return "discrete"
	case Virtual:
		return "virtual"
	case CPU:
		return "cpu"
	}
	return "other"
}

// PhysicalDevice is a device as the driver describes it. Nothing in it changes
// after Open; what changes is asked anew by HeapsNow and FreeBytes.
type PhysicalDevice struct {
	Index                  int // place in the loader's list
	Name                   string
	DriverName, DriverInfo string // "radv", "Mesa 25.0.7"
	UUID                   string // stays with the hardware and driver
	PCI                    string // address, "0000:65:00.0"; "" where there is none or the driver does not say
	Type                   DeviceType
	APIVersion             Version
	DriverVersion          uint32   // packed in the vendor's own way
	CacheUUID              [16]byte // of the driver's pipeline caches
	VendorID, DeviceID     uint32
	Heaps                  []Heap
	MemoryTypes            []MemoryType
	QueueFamilies          []QueueFamily
	Limits                 Limits
	Features               Features
	CooperativeMatrices    []CooperativeMatrix // that a subgroup can multiply; none without the feature
	granularities          []CooperativeMatrix // FlexibleMatrix: or multiples of these
	instance               *Instance
	handle                 raw.PhysicalDevice
	extensions             map[string]bool
}

// Heap is one of a device's memories.
type Heap struct {
	Bytes       int64
	BudgetBytes int64 // what this process may use; 0.9 x Bytes where the driver does not say
	UsedBytes   int64 // what it uses now; 0 where the driver does not say
	DeviceLocal bool
}

// MemoryType is a way to allocate from a heap.
type MemoryType struct {
	Heap                                               int
	DeviceLocal, HostVisible, HostCoherent, HostCached bool
	special                                            bool // protected, lazily allocated, vendor flags: not for us
}

// QueueFamily is a kind of queue.
type QueueFamily struct {
	Count                       int
	Graphics, Compute, Transfer bool // every compute family can transfer
	Video, OpticalFlow          bool
	TimestampBits               int // 0: no timestamps
}

// Limits are the numbers a program must keep to.
type Limits struct {
	MaxStorageBufferRange   int64
	MaxAllocationBytes      int64 // what the driver promises for one allocation
	MaxAllocations          int
	MaxPushConstants        int // bytes, at least 128
	MaxWorkgroups           [3]uint32
	MaxWorkgroupSize        [3]uint32
	MaxWorkgroupInvocations uint32
	MaxSharedBytes          int
	Subgroup                int // the driver's own choice of subgroup size
	SubgroupMin             int // what a pipeline may ask for; 0 without subgroup size control
	SubgroupMax             int
	TimestampPeriod         float64 // ns per tick
	HostImportAlign         int64   // of memory to import; 0 without HostImport
}

// Features are what a device can do, or, in Device.Features, what is turned on.
type Features struct {
	BufferDeviceAddress bool // required
	TimelineSemaphore   bool // required
	HostQueryReset      bool

	Float16, Int8, Int64 bool // arithmetic
	Storage8, Storage16  bool // 8- and 16-bit loads and stores
	IntDotProduct        bool
	SubgroupArithmetic   bool // subgroup arithmetic and shuffles in compute shaders
	SubgroupSizeControl  bool
	CooperativeMatrix    bool // KHR, with the 16-bit floats and the memory model it is of use with
	FlexibleMatrix       bool // NV2: of more sizes
	Persistent           bool // it runs many workgroups side by side: some kernels have few that go on to other outputs
	Synchronization2     bool
	MemoryBudget         bool // the driver says what is free
	MemoryPriority       bool
	PageableDeviceLocal  bool
	ConditionalRendering bool // dispatches that a word in memory can turn off, see CommandBuffer.BeginConditional
	HostImport           bool // memory of ours can become a buffer
	Inspect              bool // the driver says what it made of a pipeline, see DeviceOptions.Inspect
	CalibratedTimestamps bool // the device's clock can be read by the host, see Clock
	UMA                  bool // one memory for CPU and device
	ReBAR                bool // the CPU can write all of a discrete device's memory
}

// CooperativeMatrix is a product that a subgroup computes together: (M, K) · (K, N) of halves, summed in floats.
type CooperativeMatrix struct{ M, N, K int }

func (p *PhysicalDevice) has(ext string) bool { return p.extensions[ext] }

func (p *PhysicalDevice) query() error {
	if err := p.queryExtensions(); err != nil {
		return err
	}
	p.queryProperties()
	p.queryFamilies()
	p.queryMemory()
	p.queryFeatures()
	return nil
}

func (p *PhysicalDevice) queryExtensions() error {
	var props []raw.ExtensionProperties
	err := enumerate("vkEnumerateDeviceExtensionProperties", &props, func(n *uint32, e *raw.ExtensionProperties) raw.Result {
		return p.instance.fn.EnumerateDeviceExtensionProperties(p.handle, nil, n, e)
	})
	if err != nil {
		return err
	}
	p.extensions = make(map[string]bool, len(props))
	for _, name := range extensionNames(props) {
		p.extensions[name] = true
	}
	return nil
}

func (p *PhysicalDevice) queryProperties() {
	var one raw.PhysicalDeviceProperties
	p.instance.fn.GetPhysicalDeviceProperties(p.handle, &one)
	p.APIVersion = Version(one.ApiVersion)
	p.setProperties(&one)
	if !p.modern() {
		return // 1.2's structs may not be asked for; NewDevice refuses such a device
	}
	host := &raw.PhysicalDeviceExternalMemoryHostPropertiesEXT{SType: raw.StructureTypePhysicalDeviceExternalMemoryHostPropertiesEXT}
	size := &raw.PhysicalDeviceSubgroupSizeControlProperties{SType: raw.StructureTypePhysicalDeviceSubgroupSizeControlProperties}
	p12 := &raw.PhysicalDeviceVulkan12Properties{SType: raw.StructureTypePhysicalDeviceVulkan12Properties}
	p11 := &raw.PhysicalDeviceVulkan11Properties{SType: raw.StructureTypePhysicalDeviceVulkan11Properties, PNext: raw.Ptr(p12)}
	next := raw.Ptr(p11)
	pci := &raw.PhysicalDevicePCIBusInfoPropertiesEXT{SType: raw.StructureTypePhysicalDevicePciBusInfoPropertiesEXT}
	if p.has(raw.EXTPciBusInfoExtensionName) {
		pci.PNext, next = next, raw.Ptr(pci)
	}
	if p.has(extHostImport) {
		host.PNext, next = next, raw.Ptr(host)
	}
	if p.has(extSubgroupSize) {
		size.PNext, next = next, raw.Ptr(size)
	}
	two := &raw.PhysicalDeviceProperties2{SType: raw.StructureTypePhysicalDeviceProperties2, PNext: next}
	p.instance.fn.GetPhysicalDeviceProperties2(p.handle, two)

	p.DriverName, p.DriverInfo = raw.GoString(&p12.DriverName[0]), raw.GoString(&p12.DriverInfo[0])
	u := p11.DeviceUUID
	p.UUID = fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
	if p.has(raw.EXTPciBusInfoExtensionName) {
		p.PCI = fmt.Sprintf("%04x:%02x:%02x.%x", pci.PciDomain, pci.PciBus, pci.PciDevice, pci.PciFunction)
	}
	p.Limits.MaxAllocationBytes = int64(min(p11.MaxMemoryAllocationSize, 1<<62))
	p.Limits.Subgroup = int(p11.SubgroupSize)
	const ops = raw.SubgroupFeatureBasicBit | raw.SubgroupFeatureArithmeticBit | raw.SubgroupFeatureShuffleBit
	p.Features.SubgroupArithmetic = p11.SubgroupSupportedStages&raw.ShaderStageComputeBit != 0 && p11.SubgroupSupportedOperations&ops == ops
	p.Limits.HostImportAlign = int64(host.MinImportedHostPointerAlignment)
	if size.RequiredSubgroupSizeStages&raw.ShaderStageComputeBit != 0 {
		p.Limits.SubgroupMin, p.Limits.SubgroupMax = int(size.MinSubgroupSize), int(size.MaxSubgroupSize)
	}
}

func (p *PhysicalDevice) setProperties(d *raw.PhysicalDeviceProperties) {
	p.Name = raw.GoString(&d.DeviceName[0])
	p.DriverVersion, p.VendorID, p.DeviceID = d.DriverVersion, d.VendorID, d.DeviceID
	p.CacheUUID = d.PipelineCacheUUID
	switch d.DeviceType {
	case raw.PhysicalDeviceTypeIntegratedGpu:
		p.Type = Integrated
	case raw.PhysicalDeviceTypeDiscreteGpu:
		p.Type = Discrete
	case raw.PhysicalDeviceTypeVirtualGpu:
		p.Type = Virtual
	case raw.PhysicalDeviceTypeCpu:
		p.Type = CPU
	}
	l := &d.Limits
	p.Limits = Limits{
		MaxStorageBufferRange:   int64(l.MaxStorageBufferRange),
		MaxAllocations:          int(l.MaxMemoryAllocationCount),
		MaxPushConstants:        int(l.MaxPushConstantsSize),
		MaxWorkgroups:           l.MaxComputeWorkGroupCount,
		MaxWorkgroupSize:        l.MaxComputeWorkGroupSize,
		MaxWorkgroupInvocations: l.MaxComputeWorkGroupInvocations,
		MaxSharedBytes:          int(l.MaxComputeSharedMemorySize),
		TimestampPeriod:         float64(l.TimestampPeriod),
	}
}

func (p *PhysicalDevice) queryFamilies() {
	var n uint32
	p.instance.fn.GetPhysicalDeviceQueueFamilyProperties(p.handle, &n, nil)
	if n == 0 {
		return
	}
	list := make([]raw.QueueFamilyProperties, n)
	p.instance.fn.GetPhysicalDeviceQueueFamilyProperties(p.handle, &n, &list[0])
	for _, f := range list[:n] {
		has := func(bit raw.QueueFlags) bool { return f.QueueFlags&bit != 0 }
		p.QueueFamilies = append(p.QueueFamilies, QueueFamily{
			Count:         int(f.QueueCount),
			Graphics:      has(raw.QueueGraphicsBit),
			Compute:       has(raw.QueueComputeBit),
			Transfer:      has(raw.QueueTransferBit | raw.QueueComputeBit | raw.QueueGraphicsBit),
			Video:         has(queueVideo),
			OpticalFlow:   has(queueOpticalFlow),
			TimestampBits: int(f.TimestampValidBits),
		})
	}
}

// Newer than some registries, so given by number.
const (
	queueVideo       = 0x20 | 0x40
	queueOpticalFlow = 0x100
)

func (p *PhysicalDevice) modern() bool { return p.APIVersion >= MakeVersion(1, 2, 0) }
