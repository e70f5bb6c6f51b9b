package vk

import "leat/vk/internal/raw"

// BeginConditional makes the dispatches until EndConditional run only where the uint32 at off of b is not 0 when the device gets
// there; off is a multiple of 4. Barriers, copies, fills, updates and timestamps between the two are not affected by it.
//
// A ConditionBarrier makes a word seen that the device wrote. The word stays as it is until EndConditional: a device may read it
// once, or anew for each dispatch. Conditions don't nest, and need Features.ConditionalRendering.
func (c *CommandBuffer) BeginConditional(b *Buffer, off int64) {
	if !c.conditions("begin a condition") {
		return
	}
	if err := b.span(off, 4); err != nil {
		c.fail("begin a condition: %w", err)
		return
	}
	switch {
	case c.conditional:
		c.fail("begin a condition at %d of buffer %q inside of another", off, b.What)
	case off%4 != 0:
		c.fail("begin a condition at %d of buffer %q: not a multiple of 4", off, b.What)
	case b.foreign != nil:
		c.fail("begin a condition: buffer %q is imported", b.What)
	default:
		c.conditional = true
		c.block.read = raw.PipelineStageConditionalRenderingBitEXT
		c.block.condition.Buffer, c.block.condition.Offset = b.handle, uint64(off)
		c.fn.CmdBeginConditionalRenderingEXT(c.handle, &c.block.condition)
	}
}

// EndConditional makes the dispatches that follow run whatever any word is.
func (c *CommandBuffer) EndConditional() {
	if !c.conditions("end a condition") {
		return
	}
	if !c.conditional {
		c.fail("end a condition: none has begun")
		return
	}
	c.conditional = false
	c.fn.CmdEndConditionalRenderingEXT(c.handle)
}

// ConditionBarrier makes what dispatches and copies before it wrote visible to BeginConditional, and to nothing else.
func (c *CommandBuffer) ConditionBarrier() {
	if c.conditions("put a barrier before a condition") {
		b := &c.block
		c.fn.CmdPipelineBarrier(c.handle, b.stages, raw.PipelineStageConditionalRenderingBitEXT, 0, 1, &b.conditionBarrier, 0, nil, 0, nil)
	}
}

// DispatchConditionBarrier is a DispatchBarrier that makes what dispatches before it wrote visible to BeginConditional, too.
func (c *CommandBuffer) DispatchConditionBarrier() {
	if c.conditions("put a barrier before a condition") {
		b := &c.block
		const to = raw.PipelineStageComputeShaderBit | raw.PipelineStageConditionalRenderingBitEXT
		c.fn.CmdPipelineBarrier(c.handle, raw.PipelineStageComputeShaderBit|b.read, to, 0, 1, &b.dispatchCondition, 0, nil, 0, nil)
	}
}

// conditions reports whether a command with conditions may be recorded.
func (c *CommandBuffer) conditions(what string) bool {
	switch {
	case !c.ok():
	case !c.queue.dev.Features.ConditionalRendering:
		c.fail("%s: the device lacks conditionalRendering", what)
	case !c.queue.compute:
		c.fail("%s on the %s queue: its family only transfers", what, c.queue.name)
	default:
		return true
	}
	return false
}
