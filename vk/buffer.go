package vk

import (
	"errors"
	"fmt"

	"leat/vk/internal/raw"
)

const bufferUsage = raw.BufferUsageStorageBufferBit | raw.BufferUsageTransferSrcBit |
	raw.BufferUsageTransferDstBit | raw.BufferUsageShaderDeviceAddressBit

// Buffer is memory with an address, shared by both queues.
type Buffer struct {
	Address    uint64 // for shaders
	Bytes      int64  // as asked
	AllocBytes int64  // as taken from the heap
	Class      MemoryClass
	MemoryType int // index into PhysicalDevice.MemoryTypes
	What       string

	dev     *Device
	handle  raw.Buffer
	memory  raw.DeviceMemory
	mapped  []byte
	foreign []byte // memory of ours that the buffer is made of, see ImportBuffer
}

// NewBuffer makes a buffer with memory of its own, its contents undefined. What
// names it in errors and validation messages: "layer 17", "KV page 3". When a
// heap is full the next that suits the class is tried.
func (d *Device) NewBuffer(what string, bytes int64, c MemoryClass) (*Buffer, error) {
	b := &Buffer{Bytes: bytes, Class: c, What: what, dev: d}
	if err := b.make(); err != nil {
		return nil, fmt.Errorf("make %v buffer %q of %d bytes: %w", c, what, bytes, err)
	}
	return b, nil
}

func (b *Buffer) make() error {
	req, err := b.create()
	if err == nil {
		err = b.allocate(req)
	}
	if err == nil {
		err = b.bind()
	}
	if err != nil {
		b.destroy()
		return err
	}
	b.dev.adopt(b)
	return nil
}

// BufferBytes is what a buffer will take from its heap: its AllocBytes.
func (d *Device) BufferBytes(bytes int64, c MemoryClass) (int64, error) {
	b := &Buffer{Bytes: bytes, Class: c, dev: d}
	req, err := b.create()
	b.destroy()
	if err != nil {
		return 0, fmt.Errorf("ask for the size of a %v buffer of %d bytes: %w", c, bytes, err)
	}
	return int64(req.Size), nil
}

func (b *Buffer) create() (raw.MemoryRequirements, error) {
	var req raw.MemoryRequirements
	if b.Bytes <= 0 {
		return req, errors.New("the size must be above zero")
	}
	if b.Class < DeviceLocal || b.Class > Mapped {
		return req, errors.New("no such memory class")
	}
	d := b.dev
	info := &raw.BufferCreateInfo{
		SType: raw.StructureTypeBufferCreateInfo,
		Size:  uint64(b.Bytes),
		Usage: bufferUsage,
	}
	if d.Features.ConditionalRendering && b.foreign == nil { // imports may allow fewer uses
		info.Usage |= raw.BufferUsageConditionalRenderingBitEXT
	}
	if b.foreign != nil {
		info.PNext = raw.Ptr(&raw.ExternalMemoryBufferCreateInfo{
			SType:       raw.StructureTypeExternalMemoryBufferCreateInfo,
			HandleTypes: raw.ExternalMemoryHandleTypeHostAllocationBitEXT,
		})
	}
	if len(d.families) > 1 { // no ownership transfers between the queues
		info.SharingMode = raw.SharingModeConcurrent
		info.QueueFamilyIndexCount, info.PQueueFamilyIndices = first(d.families)
	}
	if err := d.call("vkCreateBuffer", "", func() Result { return d.fn.CreateBuffer(d.handle, info, nil, &b.handle) }); err != nil {
		return req, err
	}
	d.fn.GetBufferMemoryRequirements(d.handle, b.handle, &req)
	return req, nil
}

// allocate takes memory of the best type that has room.
func (b *Buffer) allocate(req raw.MemoryRequirements) error {
	d := b.dev
	flags := &raw.MemoryAllocateFlagsInfo{
		SType: raw.StructureTypeMemoryAllocateFlagsInfo,
		Flags: raw.MemoryAllocateDeviceAddressBit,
	}
	if b.foreign != nil {
		if err := b.importInto(flags, &req); err != nil {
			return err
		}
	}
	types := d.Physical.rank(req.MemoryTypeBits, b.Class)
	if len(types) == 0 {
		return fmt.Errorf("no memory type of the device is %v (allowed %#x)", b.Class, req.MemoryTypeBits)
	}
	b.AllocBytes = int64(req.Size)
	var err error
	for _, t := range types {
		b.MemoryType = t
		if b.AllocBytes > d.Physical.Heaps[d.Physical.MemoryTypes[t].Heap].Bytes { // may not even be asked for
			err = &CallError{Call: "vkAllocateMemory", Result: ErrOutOfDeviceMemory}
			continue
		}
		info := &raw.MemoryAllocateInfo{
			SType:           raw.StructureTypeMemoryAllocateInfo,
			PNext:           raw.Ptr(flags),
			AllocationSize:  req.Size,
			MemoryTypeIndex: uint32(t),
		}
		err = d.call("vkAllocateMemory", "", func() Result { return d.fn.AllocateMemory(d.handle, info, nil, &b.memory) })
		if !errors.Is(err, ErrOutOfDeviceMemory) && !errors.Is(err, ErrOutOfHostMemory) {
			return err
		}
	}
	return err
}

func (b *Buffer) bind() error {
	d := b.dev
	if err := d.call("vkBindBufferMemory", "", func() Result { return d.fn.BindBufferMemory(d.handle, b.handle, b.memory, 0) }); err != nil {
		return err
	}
	b.Address = uint64(d.fn.GetBufferDeviceAddress(d.handle, &raw.BufferDeviceAddressInfo{
		SType:  raw.StructureTypeBufferDeviceAddressInfo,
		Buffer: b.handle,
	}))
	d.nameObject(raw.ObjectTypeBuffer, uint64(b.handle), b.What)
	d.nameObject(raw.ObjectTypeDeviceMemory, uint64(b.memory), b.What)
	if b.foreign != nil {
		b.mapped = b.foreign
		return nil
	}
	if b.Class == DeviceLocal {
		return nil
	}
	p := raw.Ptr[byte](nil)
	const whole = ^uint64(0)
	if err := d.call("vkMapMemory", "", func() Result { return d.fn.MapMemory(d.handle, b.memory, 0, whole, 0, &p) }); err != nil {
		return err
	}
	b.mapped = raw.Slice(p, b.Bytes)
	return nil
}

// Mapped is the buffer's memory as the CPU sees it, nil for DeviceLocal. What
// the CPU writes before a Submit is seen by it; what the device writes is seen
// after a HostBarrier and a wait on the timeline. It ends with Close.
func (b *Buffer) Mapped() []byte { return b.mapped }

// Close frees the memory. The device must be done with it.
func (b *Buffer) Close() { b.dev.release(b) }

func (b *Buffer) label() string { return fmt.Sprintf("buffer %q", b.What) }

func (b *Buffer) destroy() {
	b.mapped, b.foreign = nil, nil
	b.dev.fn.DestroyBuffer(b.dev.handle, b.handle, nil)
	b.dev.fn.FreeMemory(b.dev.handle, b.memory, nil) // unmaps it
}

// span checks that [off, off+bytes) lies in the buffer.
func (b *Buffer) span(off, bytes int64) error {
	if b == nil {
		return errors.New("no buffer")
	}
	if off < 0 || bytes < 0 || off > b.Bytes || bytes > b.Bytes-off {
		return fmt.Errorf("bytes %d to %d lie outside buffer %q of %d bytes", off, off+bytes, b.What, b.Bytes)
	}
	return nil
}
