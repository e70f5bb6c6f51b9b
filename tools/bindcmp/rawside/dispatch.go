package rawside

import (
	"leat/vk/internal/raw"

	"leat/vk/bindcmp/probe"
)

// Begin starts a recording with the kernel bound.
func (b *Binding) Begin() error {
	err := check("vkBeginCommandBuffer", b.Funcs.BeginCommandBuffer(b.Commands, &raw.CommandBufferBeginInfo{
		SType: raw.StructureTypeCommandBufferBeginInfo, Flags: raw.CommandBufferUsageOneTimeSubmitBit,
	}))
	b.Funcs.CmdBindPipeline(b.Commands, raw.PipelineBindPointCompute, b.Pipeline)
	b.Funcs.CmdBindDescriptorSets(b.Commands, raw.PipelineBindPointCompute, b.Layout, 0, 1, &b.Set, 0, nil)
	return err
}

// End ends it.
func (b *Binding) End() error {
	return check("vkEndCommandBuffer", b.Funcs.EndCommandBuffer(b.Commands))
}

// Idle waits for the queue.
func (b *Binding) Idle() error { return check("vkQueueWaitIdle", b.Funcs.QueueWaitIdle(b.Queue)) }

// UpdateSet passes a write that is kept, then a new one.
func (b *Binding) UpdateSet() error {
	if b.kept == nil {
		b.kept = b.Write(b.Buffers())
	}
	b.Funcs.UpdateDescriptorSets(b.Device, 1, b.kept, 0, nil)
	b.Funcs.UpdateDescriptorSets(b.Device, 1, b.Write(b.Buffers()), 0, nil)
	return nil
}

// CreatePipeline makes a pipeline and destroys it.
func (b *Binding) CreatePipeline() error {
	p, err := b.Compile()
	b.Funcs.DestroyPipeline(b.Device, p, nil)
	return err
}

// Dispatch runs the kernel once.
func (b *Binding) Dispatch() ([]uint32, error) {
	probe.Fill(b.Mapped)
	if err := b.Begin(); err != nil {
		return nil, err
	}
	b.Funcs.CmdPushConstants(b.Commands, b.Layout, raw.ShaderStageComputeBit, 0, probe.ArgsBytes, raw.Ptr(&probe.KernelArgs))
	b.Funcs.CmdDispatch(b.Commands, probe.Groups, 1, 1)
	b.Funcs.CmdPipelineBarrier(b.Commands, raw.PipelineStageComputeShaderBit, raw.PipelineStageHostBit, 0, 1, &raw.MemoryBarrier{
		SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: raw.AccessShaderWriteBit, DstAccessMask: raw.AccessHostReadBit,
	}, 0, nil, 0, nil)
	if err := b.End(); err != nil {
		return nil, err
	}
	err := check("vkQueueSubmit", b.Funcs.QueueSubmit(b.Queue, 1, &raw.SubmitInfo{
		SType: raw.StructureTypeSubmitInfo, CommandBufferCount: 1, PCommandBuffers: &b.Commands,
	}, 0))
	if err == nil {
		err = b.Idle()
	}
	return probe.Output(b.Mapped), err
}
