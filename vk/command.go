package vk

import (
	"fmt"

	"leat/vk/internal/raw"
)

// CommandPool makes command buffers for one queue. A pool and its command
// buffers belong to one goroutine at a time.
type CommandPool struct {
	queue  *Queue
	handle raw.CommandPool
}

// NewCommandPool makes a pool for command buffers to be submitted to q.
func (q *Queue) NewCommandPool() (*CommandPool, error) {
	d := q.dev
	p := &CommandPool{queue: q}
	info := &raw.CommandPoolCreateInfo{
		SType:            raw.StructureTypeCommandPoolCreateInfo,
		Flags:            raw.CommandPoolCreateResetCommandBufferBit,
		QueueFamilyIndex: uint32(q.Family),
	}
	err := d.call("vkCreateCommandPool", q.what, func() Result { return d.fn.CreateCommandPool(d.handle, info, nil, &p.handle) })
	if err != nil {
		return nil, err
	}
	d.adopt(p)
	return p, nil
}

// New makes a command buffer, which lives as long as the pool.
func (p *CommandPool) New() (*CommandBuffer, error) {
	d := p.queue.dev
	c := &CommandBuffer{queue: p.queue, fn: d.fn}
	info := &raw.CommandBufferAllocateInfo{
		SType:              raw.StructureTypeCommandBufferAllocateInfo,
		CommandPool:        p.handle,
		Level:              raw.CommandBufferLevelPrimary,
		CommandBufferCount: 1,
	}
	err := d.call("vkAllocateCommandBuffers", p.queue.what, func() Result { return d.fn.AllocateCommandBuffers(d.handle, info, &c.handle) })
	if err != nil {
		return nil, err
	}
	c.block.init(p.queue)
	return c, nil
}

// Close frees the pool and its command buffers, none of which may be running.
func (p *CommandPool) Close() { p.queue.dev.release(p) }

func (p *CommandPool) label() string { return "a command pool of the " + p.queue.name + " queue" }

func (p *CommandPool) destroy() {
	p.queue.dev.fn.DestroyCommandPool(p.queue.dev.handle, p.handle, nil)
}

type commandState int

const (
	initial commandState = iota
	recording
	executable
	failed
)

func (s commandState) String() string {
	return [...]string{"not begun", "still recording", "ended", "broken by an error"}[s]
}

// CommandBuffer is a list of commands. Its recording methods return nothing:
// the first that is wrong is remembered, the rest are skipped, End tells.
type CommandBuffer struct {
	queue       *Queue
	handle      raw.CommandBuffer
	fn          *raw.DeviceFuncs
	state       commandState
	conditional bool // between BeginConditional and EndConditional
	err         error
	block       commandBlock
}

// commandBlock is what recording calls read. It lives with its command
// buffer, so that recording allocates nothing.
type commandBlock struct {
	begin       raw.CommandBufferBeginInfo
	barrier     raw.MemoryBarrier
	copyBarrier raw.MemoryBarrier
	dispatches  raw.MemoryBarrier
	hostBarrier raw.MemoryBarrier
	stages      raw.PipelineStageFlags // those our commands run in
	read        raw.PipelineStageFlags // that of conditions, once there was one: their words may not be written too early
	region      raw.BufferCopy
	condition   raw.ConditionalRenderingBeginInfoEXT

	conditionBarrier  raw.MemoryBarrier
	dispatchCondition raw.MemoryBarrier
	push              [256]byte
}

func (b *commandBlock) init(q *Queue) {
	b.begin = raw.CommandBufferBeginInfo{SType: raw.StructureTypeCommandBufferBeginInfo}
	writes := raw.AccessFlags(raw.AccessTransferWriteBit)
	reads := raw.AccessFlags(raw.AccessTransferReadBit)
	b.stages = raw.PipelineStageTransferBit
	if q.compute { // a family that only transfers knows no shaders
		writes |= raw.AccessShaderWriteBit
		reads |= raw.AccessShaderReadBit
		b.stages |= raw.PipelineStageComputeShaderBit
	}
	b.barrier = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: writes, DstAccessMask: reads | writes}
	const copies = raw.AccessTransferWriteBit | raw.AccessTransferReadBit
	b.copyBarrier = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: raw.AccessTransferWriteBit, DstAccessMask: copies}
	const words = raw.AccessShaderReadBit | raw.AccessShaderWriteBit
	b.dispatches = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: raw.AccessShaderWriteBit, DstAccessMask: words}
	b.hostBarrier = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: writes, DstAccessMask: raw.AccessHostReadBit}
	b.condition = raw.ConditionalRenderingBeginInfoEXT{SType: raw.StructureTypeConditionalRenderingBeginInfoEXT}
	b.conditionBarrier = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: writes, DstAccessMask: raw.AccessConditionalRenderingReadBitEXT}
	b.dispatchCondition = raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: raw.AccessShaderWriteBit, DstAccessMask: words | raw.AccessConditionalRenderingReadBitEXT}
}

// Begin starts a new recording, for one submission; what was recorded before is gone.
func (c *CommandBuffer) Begin() error { return c.start(raw.CommandBufferUsageOneTimeSubmitBit) }

// BeginReusable is Begin for as many submissions as one likes, each after the one before has run.
func (c *CommandBuffer) BeginReusable() error { return c.start(0) }

func (c *CommandBuffer) start(flags raw.CommandBufferUsageFlags) error {
	c.state, c.conditional, c.err = initial, false, nil
	c.block.begin.Flags, c.block.read = flags, 0
	err := c.queue.dev.call("vkBeginCommandBuffer", c.queue.what, func() Result { return c.fn.BeginCommandBuffer(c.handle, &c.block.begin) })
	if err != nil {
		return err
	}
	c.state = recording
	return nil
}

// End ends the recording. Its error is the first mistake made since Begin.
func (c *CommandBuffer) End() error {
	if c.err == nil && c.state != recording {
		c.err = fmt.Errorf("end a command buffer that is %v", c.state)
	}
	if c.state == recording {
		if c.conditional { // Vulkan wants it ended, after another mistake too
			c.fail("end a command buffer inside of a condition")
			c.fn.CmdEndConditionalRenderingEXT(c.handle)
		}
		err := c.queue.dev.call("vkEndCommandBuffer", c.queue.what, func() Result { return c.fn.EndCommandBuffer(c.handle) })
		if err != nil && c.err == nil {
			c.err = err
		}
	}
	c.state = executable
	if c.err != nil {
		c.state = failed
	}
	return c.err
}

// ok reports whether the next command may be recorded.
func (c *CommandBuffer) ok() bool {
	if c.err == nil && c.state != recording {
		c.fail("record into a command buffer that is %v", c.state)
	}
	return c.err == nil
}

func (c *CommandBuffer) fail(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, a...)
	}
}

// Bind makes p the pipeline of the dispatches that follow.
func (c *CommandBuffer) Bind(p *Pipeline) {
	if c.ok() {
		c.fn.CmdBindPipeline(c.handle, raw.PipelineBindPointCompute, p.handle)
	}
}

// PushConstants sets the first len(b) bytes of p's push constants.
func (c *CommandBuffer) PushConstants(p *Pipeline, b []byte) {
	if !c.ok() || len(b) == 0 {
		return
	}
	if len(b) > p.PushBytes || len(b)%4 != 0 {
		c.fail("push %d bytes to pipeline %q, which takes %d", len(b), p.Name, p.PushBytes)
		return
	}
	copy(c.block.push[:], b)
	c.fn.CmdPushConstants(c.handle, p.layout, raw.ShaderStageComputeBit, 0, uint32(len(b)), raw.Ptr(&c.block.push))
}

// Push sets p's push constants to *v, a struct of numbers laid out as the shader has it.
func Push[T any](c *CommandBuffer, p *Pipeline, v *T) { c.PushConstants(p, raw.Bytes(v)) }

// Dispatch runs the bound pipeline on x*y*z workgroups; none is no work.
func (c *CommandBuffer) Dispatch(x, y, z uint32) {
	if !c.ok() || x == 0 || y == 0 || z == 0 {
		return
	}
	if m := &c.queue.dev.Physical.Limits.MaxWorkgroups; x > m[0] || y > m[1] || z > m[2] {
		c.fail("dispatch %dx%dx%d workgroups: the device takes %dx%dx%d", x, y, z, m[0], m[1], m[2])
		return
	}
	c.fn.CmdDispatch(c.handle, x, y, z)
}

// Barrier makes all commands before it finish, and their writes seen, before
// any after it starts.
func (c *CommandBuffer) Barrier() {
	if c.ok() {
		b := &c.block
		c.fn.CmdPipelineBarrier(c.handle, b.stages|b.read, b.stages, 0, 1, &b.barrier, 0, nil, 0, nil)
	}
}

// CopyBarrier is a Barrier between copies alone; dispatches before and after
// it may run on.
func (c *CommandBuffer) CopyBarrier() {
	if c.ok() {
		b := &c.block
		c.fn.CmdPipelineBarrier(c.handle, raw.PipelineStageTransferBit|b.read, raw.PipelineStageTransferBit, 0, 1, &b.copyBarrier, 0, nil, 0, nil)
	}
}

// DispatchBarrier is a Barrier between dispatches alone; copies before and after
// it may run on.
func (c *CommandBuffer) DispatchBarrier() {
	if c.ok() {
		b := &c.block
		c.fn.CmdPipelineBarrier(c.handle, raw.PipelineStageComputeShaderBit|b.read, raw.PipelineStageComputeShaderBit, 0, 1, &b.dispatches, 0, nil, 0, nil)
	}
}

// HostBarrier makes the writes before it visible to the CPU, once it has
// waited for the submission's signal.
func (c *CommandBuffer) HostBarrier() {
	if c.ok() {
		b := &c.block
		c.fn.CmdPipelineBarrier(c.handle, b.stages, raw.PipelineStageHostBit, 0, 1, &b.hostBarrier, 0, nil, 0, nil)
	}
}

// Copy copies bytes from src to dst, which may be the same buffer if the
// ranges do not meet.
func (c *CommandBuffer) Copy(dst *Buffer, dstOff int64, src *Buffer, srcOff, bytes int64) {
	if !c.ok() || bytes == 0 {
		return
	}
	if err := dst.span(dstOff, bytes); err != nil {
		c.fail("copy to: %w", err)
		return
	}
	if err := src.span(srcOff, bytes); err != nil {
		c.fail("copy from: %w", err)
		return
	}
	c.block.region = raw.BufferCopy{SrcOffset: uint64(srcOff), DstOffset: uint64(dstOff), Size: uint64(bytes)}
	c.fn.CmdCopyBuffer(c.handle, src.handle, dst.handle, 1, &c.block.region)
}

// MaxUpdate is the most bytes that Update writes.
const MaxUpdate = 65536

// Update writes b to dst, as it is now; off and b's length are multiples of 4.
func (c *CommandBuffer) Update(dst *Buffer, off int64, b []byte) {
	if !c.ok() || len(b) == 0 {
		return
	}
	if err := dst.span(off, int64(len(b))); err != nil {
		c.fail("update: %w", err)
		return
	}
	if off%4 != 0 || len(b)%4 != 0 || len(b) > MaxUpdate {
		c.fail("update buffer %q at %d by %d bytes: want multiples of 4, and at most %d bytes", dst.What, off, len(b), MaxUpdate)
		return
	}
	c.fn.CmdUpdateBuffer(c.handle, dst.handle, uint64(off), uint64(len(b)), raw.Ptr(&b[0]))
}

// Fill sets bytes of dst to the word v, over and over; off and bytes are multiples of 4.
func (c *CommandBuffer) Fill(dst *Buffer, off, bytes int64, v uint32) {
	if !c.ok() || bytes == 0 {
		return
	}
	if err := dst.span(off, bytes); err != nil {
		c.fail("fill: %w", err)
		return
	}
	if off%4 != 0 || bytes%4 != 0 {
		c.fail("fill buffer %q from %d for %d bytes: not multiples of 4", dst.What, off, bytes)
		return
	}
	c.fn.CmdFillBuffer(c.handle, dst.handle, uint64(off), uint64(bytes), v)
}
