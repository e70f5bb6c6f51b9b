package main

import (
	"fmt"
	"unsafe"

	vk "github.com/goki/vulkan"

	"leat/vk/bindcmp/probe"
)

// binding holds one device, and what the kernel needs, through this package's
// Vulkan. No field may point into Go's memory: calls fill handles in here, and
// cgo panics when C is given an object that holds Go pointers.
type binding struct {
	instance  vk.Instance
	physical  vk.PhysicalDevice
	device    vk.Device
	queue     vk.Queue
	buffer    vk.Buffer
	memory    vk.DeviceMemory
	mapped    []uint32
	setLayout vk.DescriptorSetLayout
	setPool   vk.DescriptorPool
	set       vk.DescriptorSet
	layout    vk.PipelineLayout
	module    vk.ShaderModule
	pipeline  vk.Pipeline
	pool      vk.CommandPool
	commands  vk.CommandBuffer
}

var keptWrites []vk.WriteDescriptorSet // UpdateSet's; no field, see above

func open() (probe.Binding, error) {
	if err := vk.SetDefaultGetInstanceProcAddr(); err != nil {
		return nil, err
	}
	if err := vk.Init(); err != nil {
		return nil, err
	}
	b := &binding{}
	for _, step := range []func() error{b.openDevice, b.makeBuffer, b.makeSet, b.makePipeline, b.makeCommands} {
		if err := step(); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

func (b *binding) Device() string {
	var properties vk.PhysicalDeviceProperties
	vk.GetPhysicalDeviceProperties(b.physical, &properties)
	properties.Deref()
	return vk.ToString(properties.DeviceName[:])
}

// check turns a result into an error.
func check(call string, r vk.Result) error {
	if r != vk.Success {
		return fmt.Errorf("%s: result %d", call, r)
	}
	return nil
}

func (b *binding) openDevice() error {
	err := check("vkCreateInstance", vk.CreateInstance(&vk.InstanceCreateInfo{
		SType: vk.StructureTypeInstanceCreateInfo,
		PApplicationInfo: &vk.ApplicationInfo{
			SType: vk.StructureTypeApplicationInfo, PApplicationName: "bindcmp\x00", PEngineName: "\x00", ApiVersion: 1<<22 | 2<<12,
		},
	}, nil, &b.instance))
	if err != nil {
		return err
	}
	if err := vk.InitInstance(b.instance); err != nil {
		return err
	}
	n := uint32(1)
	devices := make([]vk.PhysicalDevice, n)
	if r := vk.EnumeratePhysicalDevices(b.instance, &n, devices); n == 0 || r != vk.Success && r != vk.Incomplete {
		return fmt.Errorf("vkEnumeratePhysicalDevices: result %d, %d devices", r, n)
	}
	b.physical = devices[0]
	err = check("vkCreateDevice", vk.CreateDevice(b.physical, &vk.DeviceCreateInfo{
		SType: vk.StructureTypeDeviceCreateInfo, QueueCreateInfoCount: 1,
		PQueueCreateInfos: []vk.DeviceQueueCreateInfo{{
			SType: vk.StructureTypeDeviceQueueCreateInfo, QueueCount: 1, PQueuePriorities: []float32{1},
		}},
	}, nil, &b.device))
	if err == nil {
		vk.GetDeviceQueue(b.device, 0, 0, &b.queue)
	}
	return err
}

func (b *binding) makeBuffer() error {
	err := check("vkCreateBuffer", vk.CreateBuffer(b.device, &vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo, Size: probe.TotalBytes,
		Usage: vk.BufferUsageFlags(vk.BufferUsageStorageBufferBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit),
	}, nil, &b.buffer))
	if err != nil {
		return err
	}
	var need vk.MemoryRequirements
	vk.GetBufferMemoryRequirements(b.device, b.buffer, &need)
	need.Deref()
	kind, err := b.memoryType(need.MemoryTypeBits)
	if err != nil {
		return err
	}
	err = check("vkAllocateMemory", vk.AllocateMemory(b.device, &vk.MemoryAllocateInfo{
		SType: vk.StructureTypeMemoryAllocateInfo, AllocationSize: need.Size, MemoryTypeIndex: kind,
	}, nil, &b.memory))
	if err != nil {
		return err
	}
	if err := check("vkBindBufferMemory", vk.BindBufferMemory(b.device, b.buffer, b.memory, 0)); err != nil {
		return err
	}
	var p unsafe.Pointer
	if err := check("vkMapMemory", vk.MapMemory(b.device, b.memory, 0, probe.TotalBytes, 0, &p)); err != nil {
		return err
	}
	b.mapped = unsafe.Slice((*uint32)(p), probe.TotalBytes/4)
	return nil
}

func (b *binding) memoryType(bits uint32) (uint32, error) {
	const want = vk.MemoryPropertyFlags(vk.MemoryPropertyHostVisibleBit | vk.MemoryPropertyHostCoherentBit)
	var have vk.PhysicalDeviceMemoryProperties
	vk.GetPhysicalDeviceMemoryProperties(b.physical, &have)
	have.Deref()
	for i := range have.MemoryTypeCount {
		have.MemoryTypes[i].Deref()
		if bits>>i&1 == 1 && have.MemoryTypes[i].PropertyFlags&want == want {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no host-visible memory type for a buffer")
}

func (b *binding) makeSet() error {
	var bindings []vk.DescriptorSetLayoutBinding
	for i := range uint32(3) {
		bindings = append(bindings, vk.DescriptorSetLayoutBinding{
			Binding: i, DescriptorType: vk.DescriptorTypeStorageBuffer, DescriptorCount: 1,
			StageFlags: vk.ShaderStageFlags(vk.ShaderStageComputeBit),
		})
	}
	err := check("vkCreateDescriptorSetLayout", vk.CreateDescriptorSetLayout(b.device, &vk.DescriptorSetLayoutCreateInfo{
		SType: vk.StructureTypeDescriptorSetLayoutCreateInfo, BindingCount: 3, PBindings: bindings,
	}, nil, &b.setLayout))
	if err != nil {
		return err
	}
	err = check("vkCreateDescriptorPool", vk.CreateDescriptorPool(b.device, &vk.DescriptorPoolCreateInfo{
		SType: vk.StructureTypeDescriptorPoolCreateInfo, MaxSets: 1, PoolSizeCount: 1,
		PPoolSizes: []vk.DescriptorPoolSize{{Type: vk.DescriptorTypeStorageBuffer, DescriptorCount: 3}},
	}, nil, &b.setPool))
	if err != nil {
		return err
	}
	err = check("vkAllocateDescriptorSets", vk.AllocateDescriptorSets(b.device, &vk.DescriptorSetAllocateInfo{
		SType: vk.StructureTypeDescriptorSetAllocateInfo, DescriptorPool: b.setPool, DescriptorSetCount: 1,
		PSetLayouts: []vk.DescriptorSetLayout{b.setLayout},
	}, &b.set))
	if err == nil {
		vk.UpdateDescriptorSets(b.device, 1, b.writes(), 0, nil)
	}
	return err
}

// writes puts the three buffers into the set, in one write.
func (b *binding) writes() []vk.WriteDescriptorSet {
	return []vk.WriteDescriptorSet{{
		SType: vk.StructureTypeWriteDescriptorSet, DstSet: b.set, DescriptorCount: 3, DescriptorType: vk.DescriptorTypeStorageBuffer,
		PBufferInfo: []vk.DescriptorBufferInfo{
			{Buffer: b.buffer, Offset: 0, Range: probe.BufferBytes},
			{Buffer: b.buffer, Offset: probe.BufferBytes, Range: probe.BufferBytes},
			{Buffer: b.buffer, Offset: 2 * probe.BufferBytes, Range: probe.BufferBytes},
		},
	}}
}

func (b *binding) makePipeline() error {
	code := probe.Code()
	info := &vk.ShaderModuleCreateInfo{SType: vk.StructureTypeShaderModuleCreateInfo, PCode: code}
	setSize(&info.CodeSize, 4*len(code))
	err := check("vkCreateShaderModule", vk.CreateShaderModule(b.device, info, nil, &b.module))
	if err != nil {
		return err
	}
	err = check("vkCreatePipelineLayout", vk.CreatePipelineLayout(b.device, &vk.PipelineLayoutCreateInfo{
		SType: vk.StructureTypePipelineLayoutCreateInfo, SetLayoutCount: 1, PSetLayouts: []vk.DescriptorSetLayout{b.setLayout},
		PushConstantRangeCount: 1,
		PPushConstantRanges: []vk.PushConstantRange{{
			StageFlags: vk.ShaderStageFlags(vk.ShaderStageComputeBit), Size: probe.ArgsBytes,
		}},
	}, nil, &b.layout))
	if err != nil {
		return err
	}
	b.pipeline, err = b.compile()
	return err
}

// setSize is for size_t, of which the two packages think differently.
func setSize[T uint | uint64](p *T, n int) { *p = T(n) }

func (b *binding) compile() (vk.Pipeline, error) {
	pipelines := make([]vk.Pipeline, 1)
	err := check("vkCreateComputePipelines", vk.CreateComputePipelines(b.device, vk.NullPipelineCache, 1, []vk.ComputePipelineCreateInfo{{
		SType: vk.StructureTypeComputePipelineCreateInfo,
		Stage: vk.PipelineShaderStageCreateInfo{
			SType: vk.StructureTypePipelineShaderStageCreateInfo, Stage: vk.ShaderStageComputeBit, Module: b.module, PName: "main\x00",
		},
		Layout: b.layout,
	}}, nil, pipelines))
	return pipelines[0], err
}

func (b *binding) makeCommands() error {
	err := check("vkCreateCommandPool", vk.CreateCommandPool(b.device, &vk.CommandPoolCreateInfo{
		SType: vk.StructureTypeCommandPoolCreateInfo, Flags: vk.CommandPoolCreateFlags(vk.CommandPoolCreateResetCommandBufferBit),
	}, nil, &b.pool))
	if err != nil {
		return err
	}
	commands := make([]vk.CommandBuffer, 1)
	err = check("vkAllocateCommandBuffers", vk.AllocateCommandBuffers(b.device, &vk.CommandBufferAllocateInfo{
		SType: vk.StructureTypeCommandBufferAllocateInfo, CommandPool: b.pool, Level: vk.CommandBufferLevelPrimary, CommandBufferCount: 1,
	}, commands))
	b.commands = commands[0]
	return err
}

func (b *binding) Close() {
	if b.device != nil {
		vk.DeviceWaitIdle(b.device)
		vk.DestroyCommandPool(b.device, b.pool, nil)
		vk.DestroyPipeline(b.device, b.pipeline, nil)
		vk.DestroyPipelineLayout(b.device, b.layout, nil)
		vk.DestroyShaderModule(b.device, b.module, nil)
		vk.DestroyDescriptorPool(b.device, b.setPool, nil)
		vk.DestroyDescriptorSetLayout(b.device, b.setLayout, nil)
		vk.DestroyBuffer(b.device, b.buffer, nil)
		vk.FreeMemory(b.device, b.memory, nil)
		vk.DestroyDevice(b.device, nil)
	}
	if b.instance != nil {
		vk.DestroyInstance(b.instance, nil)
	}
}
