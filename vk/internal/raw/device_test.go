package raw

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"
)

// load opens the loader for a test; see noDevice.
func load(t *testing.T) *Loader {
	t.Helper()
	l, err := Load()
	if err != nil {
		noDevice(t, err)
	}
	return l
}

// noDevice skips a test for want of a loader or driver; with
// LEAT_REQUIRE_DEVICE=1 it fails.
func noDevice(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("LEAT_REQUIRE_DEVICE") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func must(t *testing.T, call string, r Result) {
	t.Helper()
	if r != Success {
		t.Fatalf("%s: %v", call, r)
	}
}

// instance is a Vulkan instance with a debug messenger, for a test.
type instance struct {
	*InstanceFuncs
	handle   Instance
	messages atomic.Int32 // warnings and errors
}

// newInstance makes an instance that fails the test on warnings; with
// LEAT_VALIDATE=1 the validation layer is on.
func newInstance(t *testing.T, onMessage MessageFunc) *instance {
	t.Helper()
	l, in := load(t), &instance{}
	cb := NewMessageCallback(func(s DebugUtilsMessageSeverityFlagsEXT, types DebugUtilsMessageTypeFlagsEXT, data *DebugUtilsMessengerCallbackDataEXT) {
		onMessage(s, types, data)
		if s >= DebugUtilsMessageSeverityWarningBitEXT {
			in.messages.Add(1)
		}
	})
	t.Cleanup(cb.Close)
	messenger := &DebugUtilsMessengerCreateInfoEXT{
		SType:           StructureTypeDebugUtilsMessengerCreateInfoEXT,
		MessageSeverity: DebugUtilsMessageSeverityInfoBitEXT | DebugUtilsMessageSeverityWarningBitEXT | DebugUtilsMessageSeverityErrorBitEXT,
		MessageType:     DebugUtilsMessageTypeValidationBitEXT | DebugUtilsMessageTypePerformanceBitEXT,
		PfnUserCallback: cb.Func(), PUserData: cb.UserData(),
	}
	extensions := []*byte{CString(EXTDebugUtilsExtensionName)}
	info := &InstanceCreateInfo{
		SType: StructureTypeInstanceCreateInfo, PNext: unsafe.Pointer(messenger),
		PApplicationInfo: &ApplicationInfo{
			SType: StructureTypeApplicationInfo, PApplicationName: CString("leat raw test"), ApiVersion: 1<<22 | 2<<12,
		},
		EnabledExtensionCount: 1, PpEnabledExtensionNames: &extensions[0],
	}
	if os.Getenv("LEAT_VALIDATE") == "1" {
		layers := []*byte{CString("VK_LAYER_KHRONOS_validation")}
		info.EnabledLayerCount, info.PpEnabledLayerNames = 1, &layers[0]
	}
	if r := l.CreateInstance(info, nil, &in.handle); r == ErrorIncompatibleDriver {
		noDevice(t, errors.New("no Vulkan driver"))
	} else {
		must(t, "vkCreateInstance", r)
	}
	f, err := l.LoadInstance(in.handle)
	if err != nil {
		t.Fatal(err)
	}
	in.InstanceFuncs = f
	t.Cleanup(func() { f.DestroyInstance(in.handle, nil) })
	var m DebugUtilsMessengerEXT
	must(t, "vkCreateDebugUtilsMessengerEXT", f.CreateDebugUtilsMessengerEXT(in.handle, messenger, nil, &m))
	t.Cleanup(func() { f.DestroyDebugUtilsMessengerEXT(in.handle, m, nil) })
	return in
}

// device is a device with one queue and a command buffer, for a test.
type device struct {
	*DeviceFuncs
	handle   Device
	physical PhysicalDevice
	queue    Queue
	commands CommandBuffer
	timeline Semaphore
}

func (in *instance) newDevice(t *testing.T) *device {
	t.Helper()
	var n uint32
	must(t, "vkEnumeratePhysicalDevices", in.EnumeratePhysicalDevices(in.handle, &n, nil))
	if n == 0 {
		noDevice(t, errors.New("no Vulkan device"))
	}
	all := make([]PhysicalDevice, n)
	must(t, "vkEnumeratePhysicalDevices", in.EnumeratePhysicalDevices(in.handle, &n, &all[0]))
	d := &device{physical: all[0]}
	priority := float32(1)
	features := &PhysicalDeviceVulkan12Features{SType: StructureTypePhysicalDeviceVulkan12Features, TimelineSemaphore: True}
	must(t, "vkCreateDevice", in.CreateDevice(d.physical, &DeviceCreateInfo{
		SType: StructureTypeDeviceCreateInfo, PNext: unsafe.Pointer(features), QueueCreateInfoCount: 1,
		PQueueCreateInfos: &DeviceQueueCreateInfo{SType: StructureTypeDeviceQueueCreateInfo, QueueCount: 1, PQueuePriorities: &priority},
	}, nil, &d.handle))
	f, err := in.LoadDevice(d.handle)
	if err != nil {
		t.Fatal(err)
	}
	d.DeviceFuncs = f
	t.Cleanup(func() { f.DestroyDevice(d.handle, nil) })
	f.GetDeviceQueue(d.handle, 0, 0, &d.queue)
	d.prepare(t)
	return d
}

// prepare makes the command buffer and the timeline.
func (d *device) prepare(t *testing.T) {
	t.Helper()
	var pool CommandPool
	must(t, "vkCreateCommandPool", d.CreateCommandPool(d.handle, &CommandPoolCreateInfo{
		SType: StructureTypeCommandPoolCreateInfo, Flags: CommandPoolCreateResetCommandBufferBit}, nil, &pool))
	t.Cleanup(func() { d.DestroyCommandPool(d.handle, pool, nil) })
	must(t, "vkAllocateCommandBuffers", d.AllocateCommandBuffers(d.handle, &CommandBufferAllocateInfo{
		SType: StructureTypeCommandBufferAllocateInfo, CommandPool: pool, CommandBufferCount: 1}, &d.commands))
	timeline := &SemaphoreTypeCreateInfo{SType: StructureTypeSemaphoreTypeCreateInfo, SemaphoreType: SemaphoreTypeTimeline}
	must(t, "vkCreateSemaphore", d.CreateSemaphore(d.handle, &SemaphoreCreateInfo{
		SType: StructureTypeSemaphoreCreateInfo, PNext: unsafe.Pointer(timeline)}, nil, &d.timeline))
	t.Cleanup(func() { d.DestroySemaphore(d.handle, d.timeline, nil) })
}

// hostBuffer makes a buffer in mapped memory.
func (d *device) hostBuffer(t *testing.T, in *instance, size uint64) (Buffer, []byte) {
	t.Helper()
	var b Buffer
	must(t, "vkCreateBuffer", d.CreateBuffer(d.handle, &BufferCreateInfo{
		SType: StructureTypeBufferCreateInfo, Size: size, Usage: BufferUsageTransferDstBit}, nil, &b))
	t.Cleanup(func() { d.DestroyBuffer(d.handle, b, nil) })
	var need MemoryRequirements
	d.GetBufferMemoryRequirements(d.handle, b, &need)
	var have PhysicalDeviceMemoryProperties
	in.GetPhysicalDeviceMemoryProperties(d.physical, &have)
	want := MemoryPropertyHostVisibleBit | MemoryPropertyHostCoherentBit
	for i, typ := range have.MemoryTypes[:have.MemoryTypeCount] {
		if need.MemoryTypeBits>>i&1 == 0 || typ.PropertyFlags&want != want {
			continue
		}
		var m DeviceMemory
		must(t, "vkAllocateMemory", d.AllocateMemory(d.handle, &MemoryAllocateInfo{
			SType: StructureTypeMemoryAllocateInfo, AllocationSize: need.Size, MemoryTypeIndex: uint32(i)}, nil, &m))
		t.Cleanup(func() { d.FreeMemory(d.handle, m, nil) })
		must(t, "vkBindBufferMemory", d.BindBufferMemory(d.handle, b, m, 0))
		var p unsafe.Pointer
		must(t, "vkMapMemory", d.MapMemory(d.handle, m, 0, WholeSize, 0, &p))
		return b, Slice(p, int64(size))
	}
	t.Fatal("no host-visible memory type for a buffer")
	return 0, nil
}

// fill submits one vkCmdFillBuffer and waits for the timeline. All arguments
// are made here, so that a collection in between would free what is not held.
func (d *device) fill(t *testing.T, b Buffer, size uint64, word uint32, value uint64) {
	t.Helper()
	must(t, "vkBeginCommandBuffer", d.BeginCommandBuffer(d.commands, &CommandBufferBeginInfo{
		SType: StructureTypeCommandBufferBeginInfo, Flags: CommandBufferUsageOneTimeSubmitBit}))
	d.CmdFillBuffer(d.commands, b, 0, size, word)
	d.CmdPipelineBarrier(d.commands, PipelineStageTransferBit, PipelineStageHostBit, 0, 1, &MemoryBarrier{
		SType: StructureTypeMemoryBarrier, SrcAccessMask: AccessTransferWriteBit, DstAccessMask: AccessHostReadBit}, 0, nil, 0, nil)
	must(t, "vkEndCommandBuffer", d.EndCommandBuffer(d.commands))
	signal := &TimelineSemaphoreSubmitInfo{SType: StructureTypeTimelineSemaphoreSubmitInfo, SignalSemaphoreValueCount: 1, PSignalSemaphoreValues: &value}
	commands, semaphore := d.commands, d.timeline
	must(t, "vkQueueSubmit", d.QueueSubmit(d.queue, 1, &SubmitInfo{
		SType: StructureTypeSubmitInfo, PNext: unsafe.Pointer(signal), CommandBufferCount: 1, PCommandBuffers: &commands,
		SignalSemaphoreCount: 1, PSignalSemaphores: &semaphore}, 0))
	must(t, "vkWaitSemaphores", d.WaitSemaphores(d.handle, &SemaphoreWaitInfo{
		SType: StructureTypeSemaphoreWaitInfo, SemaphoreCount: 1, PSemaphores: &semaphore, PValues: &value}, 10e9))
}
