package main

import (
	"unsafe"

	vk "github.com/goki/vulkan"

	"leat/vk/bindcmp/probe"
)

const layer = "goki"

func main() { probe.Main(open) }

func (b *binding) begin() error {
	err := check("vkBeginCommandBuffer", vk.BeginCommandBuffer(b.commands, &vk.CommandBufferBeginInfo{
		SType: vk.StructureTypeCommandBufferBeginInfo, Flags: vk.CommandBufferUsageFlags(vk.CommandBufferUsageOneTimeSubmitBit),
	}))
	vk.CmdBindPipeline(b.commands, vk.PipelineBindPointCompute, b.pipeline)
	vk.CmdBindDescriptorSets(b.commands, vk.PipelineBindPointCompute, b.layout, 0, 1, []vk.DescriptorSet{b.set}, 0, nil)
	return err
}

func (b *binding) end() error { return check("vkEndCommandBuffer", vk.EndCommandBuffer(b.commands)) }

func (b *binding) idle() error { return check("vkQueueWaitIdle", vk.QueueWaitIdle(b.queue)) }

func (b *binding) Dispatch() ([]uint32, error) {
	probe.Fill(b.mapped)
	if err := b.begin(); err != nil {
		return nil, err
	}
	vk.CmdPushConstants(b.commands, b.layout, vk.ShaderStageFlags(vk.ShaderStageComputeBit), 0, probe.ArgsBytes, unsafe.Pointer(&probe.KernelArgs))
	vk.CmdDispatch(b.commands, probe.Groups, 1, 1)
	vk.CmdPipelineBarrier(b.commands, vk.PipelineStageFlags(vk.PipelineStageComputeShaderBit), vk.PipelineStageFlags(vk.PipelineStageHostBit), 0,
		1, []vk.MemoryBarrier{{
			SType: vk.StructureTypeMemoryBarrier, SrcAccessMask: vk.AccessFlags(vk.AccessShaderWriteBit), DstAccessMask: vk.AccessFlags(vk.AccessHostReadBit),
		}}, 0, nil, 0, nil)
	if err := b.end(); err != nil {
		return nil, err
	}
	err := check("vkQueueSubmit", vk.QueueSubmit(b.queue, 1, []vk.SubmitInfo{{
		SType: vk.StructureTypeSubmitInfo, CommandBufferCount: 1, PCommandBuffers: []vk.CommandBuffer{b.commands},
	}}, vk.NullFence))
	if err == nil {
		err = b.idle()
	}
	return probe.Output(b.mapped), err
}

func (b *binding) CreatePipeline() error {
	p, err := b.compile()
	vk.DestroyPipeline(b.device, p, nil)
	return err
}

func (b *binding) UpdateSet() error {
	if keptWrites == nil {
		keptWrites = b.writes()
	}
	vk.UpdateDescriptorSets(b.device, 1, keptWrites, 0, nil)
	vk.UpdateDescriptorSets(b.device, 1, b.writes(), 0, nil)
	return nil
}

func barriers() []vk.MemoryBarrier {
	const access = vk.AccessFlags(vk.AccessShaderReadBit | vk.AccessShaderWriteBit)
	return []vk.MemoryBarrier{{SType: vk.StructureTypeMemoryBarrier, SrcAccessMask: access, DstAccessMask: access}}
}

func regions() []vk.BufferCopy {
	return []vk.BufferCopy{{SrcOffset: 0, DstOffset: probe.BufferBytes, Size: 256}}
}

func (b *binding) barrier(m []vk.MemoryBarrier) {
	const compute = vk.PipelineStageFlags(vk.PipelineStageComputeShaderBit)
	vk.CmdPipelineBarrier(b.commands, compute, compute, 0, 1, m, 0, nil, 0, nil)
}

// Cases has calls that take structs twice: with structs made for it, and with
// structs that were passed before. The latter send what they held the first
// time: the C copy is kept, and changes to the Go struct do not reach it. A
// reused WriteDescriptorSet is left out: the first collection after its first
// use frees the C array its copy points to, which the next call reads.
func (b *binding) Cases() ([]probe.Case, error) {
	recorded := func(name string, call func(n int)) probe.Case {
		return probe.Case{Name: name, Layer: layer, Calls: 512, Start: b.begin, Run: call, Stop: b.end}
	}
	nothing := func() error { return nil }
	barrier, region := barriers(), regions()
	submits := []vk.SubmitInfo{{SType: vk.StructureTypeSubmitInfo}}
	return []probe.Case{
		recorded(probe.Dispatch, func(n int) {
			for range n {
				vk.CmdDispatch(b.commands, 1, 1, 1)
			}
		}),
		recorded(probe.PushConstants, func(n int) {
			for range n {
				vk.CmdPushConstants(b.commands, b.layout, vk.ShaderStageFlags(vk.ShaderStageComputeBit), 0, probe.ArgsBytes, unsafe.Pointer(&probe.KernelArgs))
			}
		}),
		recorded(probe.Barrier+probe.Fresh, func(n int) {
			for range n {
				b.barrier(barriers())
			}
		}),
		recorded(probe.Barrier+probe.Reused, func(n int) {
			for range n {
				b.barrier(barrier)
			}
		}),
		recorded(probe.CopyBuffer+probe.Fresh, func(n int) {
			for range n {
				vk.CmdCopyBuffer(b.commands, b.buffer, b.buffer, 1, regions())
			}
		}),
		recorded(probe.CopyBuffer+probe.Reused, func(n int) {
			for range n {
				vk.CmdCopyBuffer(b.commands, b.buffer, b.buffer, 1, region)
			}
		}),
		{Name: probe.QueueSubmit + probe.Fresh, Layer: layer, Calls: 128, Start: nothing, Stop: b.idle, Run: func(n int) {
			for range n {
				vk.QueueSubmit(b.queue, 1, []vk.SubmitInfo{{SType: vk.StructureTypeSubmitInfo}}, vk.NullFence)
			}
		}},
		{Name: probe.QueueSubmit + probe.Reused, Layer: layer, Calls: 128, Start: nothing, Stop: b.idle, Run: func(n int) {
			for range n {
				vk.QueueSubmit(b.queue, 1, submits, vk.NullFence)
			}
		}},
		{Name: probe.UpdateSets + probe.Fresh, Layer: layer, Calls: 512, Start: nothing, Stop: nothing, Run: func(n int) {
			for range n {
				vk.UpdateDescriptorSets(b.device, 1, b.writes(), 0, nil)
			}
		}},
	}, nil
}
