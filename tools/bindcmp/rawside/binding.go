package rawside

import (
	"errors"
	"fmt"
	"unsafe"

	"leat/vk/internal/raw"

	"leat/vk/bindcmp/probe"
)

// Binding holds one device, and what the kernel needs, through leat/vk/internal/raw.
type Binding struct {
	Loader    *raw.Loader
	Instance  raw.Instance
	Physical  raw.PhysicalDevice
	Device    raw.Device
	Queue     raw.Queue
	Buffer    raw.Buffer
	Memory    raw.DeviceMemory
	Mapped    []uint32
	SetLayout raw.DescriptorSetLayout
	SetPool   raw.DescriptorPool
	Set       raw.DescriptorSet
	Layout    raw.PipelineLayout
	Module    raw.ShaderModule
	Pipeline  raw.Pipeline
	Pool      raw.CommandPool
	Commands  raw.CommandBuffer
	kept      *raw.WriteDescriptorSet

	Instances *raw.InstanceFuncs
	Funcs     *raw.DeviceFuncs
}

// Open makes all of it on the first device.
func Open() (*Binding, error) {
	b := &Binding{}
	for _, step := range []func() error{b.openInstance, b.openDevice, b.makeBuffer, b.makeSet, b.makePipeline, b.makeCommands} {
		if err := step(); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

func check(call string, r raw.Result) error {
	if r != raw.Success {
		return fmt.Errorf("%s: %w", call, r)
	}
	return nil
}

func (b *Binding) openInstance() (err error) {
	if b.Loader, err = raw.Load(); err != nil {
		return err
	}
	err = check("vkCreateInstance", b.Loader.CreateInstance(&raw.InstanceCreateInfo{
		SType: raw.StructureTypeInstanceCreateInfo,
		PApplicationInfo: &raw.ApplicationInfo{
			SType: raw.StructureTypeApplicationInfo, PApplicationName: raw.CString("bindcmp"), ApiVersion: 1<<22 | 2<<12,
		},
	}, nil, &b.Instance))
	if err != nil {
		return err
	}
	b.Instances, err = b.Loader.LoadInstance(b.Instance)
	return err
}

func (b *Binding) openDevice() error {
	n := uint32(1)
	if r := b.Instances.EnumeratePhysicalDevices(b.Instance, &n, &b.Physical); n == 0 || r != raw.Success && r != raw.Incomplete {
		return fmt.Errorf("vkEnumeratePhysicalDevices: %w, %d devices", r, n)
	}
	priority := float32(1)
	err := check("vkCreateDevice", b.Instances.CreateDevice(b.Physical, &raw.DeviceCreateInfo{
		SType: raw.StructureTypeDeviceCreateInfo, QueueCreateInfoCount: 1,
		PQueueCreateInfos: &raw.DeviceQueueCreateInfo{
			SType: raw.StructureTypeDeviceQueueCreateInfo, QueueCount: 1, PQueuePriorities: &priority,
		},
	}, nil, &b.Device))
	if err != nil {
		return err
	}
	if b.Funcs, err = b.Instances.LoadDevice(b.Device); err != nil {
		return err
	}
	b.Funcs.GetDeviceQueue(b.Device, 0, 0, &b.Queue)
	return nil
}

// Name is the device's.
func (b *Binding) Name() string {
	properties := &raw.PhysicalDeviceProperties2{SType: raw.StructureTypePhysicalDeviceProperties2}
	b.Instances.GetPhysicalDeviceProperties2(b.Physical, properties)
	return raw.GoString((*byte)(unsafe.Pointer(&properties.Properties.DeviceName)))
}

func (b *Binding) makeBuffer() error {
	err := check("vkCreateBuffer", b.Funcs.CreateBuffer(b.Device, &raw.BufferCreateInfo{
		SType: raw.StructureTypeBufferCreateInfo, Size: probe.TotalBytes,
		Usage: raw.BufferUsageStorageBufferBit | raw.BufferUsageTransferSrcBit | raw.BufferUsageTransferDstBit,
	}, nil, &b.Buffer))
	if err != nil {
		return err
	}
	need := &raw.MemoryRequirements{}
	b.Funcs.GetBufferMemoryRequirements(b.Device, b.Buffer, need)
	kind, err := b.memoryType(need.MemoryTypeBits)
	if err != nil {
		return err
	}
	err = check("vkAllocateMemory", b.Funcs.AllocateMemory(b.Device, &raw.MemoryAllocateInfo{
		SType: raw.StructureTypeMemoryAllocateInfo, AllocationSize: need.Size, MemoryTypeIndex: kind,
	}, nil, &b.Memory))
	if err != nil {
		return err
	}
	if err := check("vkBindBufferMemory", b.Funcs.BindBufferMemory(b.Device, b.Buffer, b.Memory, 0)); err != nil {
		return err
	}
	var p unsafe.Pointer
	if err := check("vkMapMemory", b.Funcs.MapMemory(b.Device, b.Memory, 0, probe.TotalBytes, 0, &p)); err != nil {
		return err
	}
	b.Mapped = unsafe.Slice((*uint32)(p), probe.TotalBytes/4)
	return nil
}

func (b *Binding) memoryType(bits uint32) (uint32, error) {
	const want = raw.MemoryPropertyHostVisibleBit | raw.MemoryPropertyHostCoherentBit
	have := &raw.PhysicalDeviceMemoryProperties{}
	b.Instances.GetPhysicalDeviceMemoryProperties(b.Physical, have)
	for i := range have.MemoryTypeCount {
		if bits>>i&1 == 1 && have.MemoryTypes[i].PropertyFlags&want == want {
			return i, nil
		}
	}
	return 0, errors.New("no host-visible memory type for a buffer")
}

func (b *Binding) makeSet() error {
	var bindings [3]raw.DescriptorSetLayoutBinding
	for i := range bindings {
		bindings[i] = raw.DescriptorSetLayoutBinding{
			Binding: uint32(i), DescriptorType: raw.DescriptorTypeStorageBuffer, DescriptorCount: 1, StageFlags: raw.ShaderStageComputeBit,
		}
	}
	err := check("vkCreateDescriptorSetLayout", b.Funcs.CreateDescriptorSetLayout(b.Device, &raw.DescriptorSetLayoutCreateInfo{
		SType: raw.StructureTypeDescriptorSetLayoutCreateInfo, BindingCount: 3, PBindings: &bindings[0],
	}, nil, &b.SetLayout))
	if err != nil {
		return err
	}
	err = check("vkCreateDescriptorPool", b.Funcs.CreateDescriptorPool(b.Device, &raw.DescriptorPoolCreateInfo{
		SType: raw.StructureTypeDescriptorPoolCreateInfo, MaxSets: 1, PoolSizeCount: 1,
		PPoolSizes: &raw.DescriptorPoolSize{Type: raw.DescriptorTypeStorageBuffer, DescriptorCount: 3},
	}, nil, &b.SetPool))
	if err != nil {
		return err
	}
	err = check("vkAllocateDescriptorSets", b.Funcs.AllocateDescriptorSets(b.Device, &raw.DescriptorSetAllocateInfo{
		SType: raw.StructureTypeDescriptorSetAllocateInfo, DescriptorPool: b.SetPool, DescriptorSetCount: 1, PSetLayouts: &b.SetLayout,
	}, &b.Set))
	if err == nil {
		b.Funcs.UpdateDescriptorSets(b.Device, 1, b.Write(b.Buffers()), 0, nil)
	}
	return err
}

// Buffers are the kernel's three.
func (b *Binding) Buffers() *[3]raw.DescriptorBufferInfo {
	return &[3]raw.DescriptorBufferInfo{
		{Buffer: b.Buffer, Offset: 0, Range: probe.BufferBytes},
		{Buffer: b.Buffer, Offset: probe.BufferBytes, Range: probe.BufferBytes},
		{Buffer: b.Buffer, Offset: 2 * probe.BufferBytes, Range: probe.BufferBytes},
	}
}

// Write puts the three buffers into the set.
func (b *Binding) Write(buffers *[3]raw.DescriptorBufferInfo) *raw.WriteDescriptorSet {
	return &raw.WriteDescriptorSet{
		SType: raw.StructureTypeWriteDescriptorSet, DstSet: b.Set, DescriptorCount: 3, DescriptorType: raw.DescriptorTypeStorageBuffer,
		PBufferInfo: &buffers[0],
	}
}

func (b *Binding) makePipeline() error {
	code := probe.Code()
	err := check("vkCreateShaderModule", b.Funcs.CreateShaderModule(b.Device, &raw.ShaderModuleCreateInfo{
		SType: raw.StructureTypeShaderModuleCreateInfo, CodeSize: uintptr(4 * len(code)), PCode: &code[0],
	}, nil, &b.Module))
	if err != nil {
		return err
	}
	err = check("vkCreatePipelineLayout", b.Funcs.CreatePipelineLayout(b.Device, &raw.PipelineLayoutCreateInfo{
		SType: raw.StructureTypePipelineLayoutCreateInfo, SetLayoutCount: 1, PSetLayouts: &b.SetLayout,
		PushConstantRangeCount: 1, PPushConstantRanges: &raw.PushConstantRange{StageFlags: raw.ShaderStageComputeBit, Size: probe.ArgsBytes},
	}, nil, &b.Layout))
	if err != nil {
		return err
	}
	b.Pipeline, err = b.Compile()
	return err
}

// Compile makes a pipeline of the kernel, from structs made for the call.
func (b *Binding) Compile() (p raw.Pipeline, err error) {
	err = check("vkCreateComputePipelines", b.Funcs.CreateComputePipelines(b.Device, 0, 1, &raw.ComputePipelineCreateInfo{
		SType: raw.StructureTypeComputePipelineCreateInfo,
		Stage: raw.PipelineShaderStageCreateInfo{
			SType: raw.StructureTypePipelineShaderStageCreateInfo, Stage: raw.ShaderStageComputeBit, Module: b.Module, PName: raw.CString("main"),
		},
		Layout: b.Layout,
	}, nil, &p))
	return p, err
}

func (b *Binding) makeCommands() error {
	err := check("vkCreateCommandPool", b.Funcs.CreateCommandPool(b.Device, &raw.CommandPoolCreateInfo{
		SType: raw.StructureTypeCommandPoolCreateInfo, Flags: raw.CommandPoolCreateResetCommandBufferBit,
	}, nil, &b.Pool))
	if err != nil {
		return err
	}
	return check("vkAllocateCommandBuffers", b.Funcs.AllocateCommandBuffers(b.Device, &raw.CommandBufferAllocateInfo{
		SType: raw.StructureTypeCommandBufferAllocateInfo, CommandPool: b.Pool, Level: raw.CommandBufferLevelPrimary, CommandBufferCount: 1,
	}, &b.Commands))
}

// Close frees everything.
func (b *Binding) Close() {
	if f := b.Funcs; f != nil {
		f.DeviceWaitIdle(b.Device)
		f.DestroyCommandPool(b.Device, b.Pool, nil)
		f.DestroyPipeline(b.Device, b.Pipeline, nil)
		f.DestroyPipelineLayout(b.Device, b.Layout, nil)
		f.DestroyShaderModule(b.Device, b.Module, nil)
		f.DestroyDescriptorPool(b.Device, b.SetPool, nil)
		f.DestroyDescriptorSetLayout(b.Device, b.SetLayout, nil)
		f.DestroyBuffer(b.Device, b.Buffer, nil)
		f.FreeMemory(b.Device, b.Memory, nil)
		f.DestroyDevice(b.Device, nil)
	}
	if b.Instances != nil {
		b.Instances.DestroyInstance(b.Instance, nil)
	}
}
