// Byleat puts leat's own binding through the probe: raw, and the public layer above it.
package main

import (
	"leat/vk/internal/raw"

	"leat/vk/bindcmp/probe"
	"leat/vk/bindcmp/rawside"
)

const layer = "leat raw"

type binding struct{ *rawside.Binding }

func main() {
	probe.Main(func() (probe.Binding, error) {
		b, err := rawside.Open()
		return binding{b}, err
	})
}

func (b binding) Device() string { return b.Name() }

func (b binding) Cases() ([]probe.Case, error) {
	cases := append(b.recorded(), b.direct()...)
	public, err := publicCases()
	return append(cases, public...), err
}

func barrier() *raw.MemoryBarrier {
	const access = raw.AccessShaderReadBit | raw.AccessShaderWriteBit
	return &raw.MemoryBarrier{SType: raw.StructureTypeMemoryBarrier, SrcAccessMask: access, DstAccessMask: access}
}

func region() *raw.BufferCopy { return &raw.BufferCopy{DstOffset: probe.BufferBytes, Size: 256} }

// recorded are the calls that go into a command buffer.
func (b binding) recorded() []probe.Case {
	f, c := b.Funcs, b.Commands
	oldBarrier, oldRegion := barrier(), region()
	const compute = raw.PipelineStageComputeShaderBit
	into := func(name string, call func(n int)) probe.Case {
		return probe.Case{Name: name, Layer: layer, Calls: 512, Start: b.Begin, Run: call, Stop: b.End}
	}
	return []probe.Case{
		into(probe.Dispatch, func(n int) {
			for range n {
				f.CmdDispatch(c, 1, 1, 1)
			}
		}),
		into(probe.PushConstants, func(n int) {
			for range n {
				f.CmdPushConstants(c, b.Layout, raw.ShaderStageComputeBit, 0, probe.ArgsBytes, raw.Ptr(&probe.KernelArgs))
			}
		}),
		into(probe.Barrier+probe.Fresh, func(n int) {
			for range n {
				f.CmdPipelineBarrier(c, compute, compute, 0, 1, barrier(), 0, nil, 0, nil)
			}
		}),
		into(probe.Barrier+probe.Reused, func(n int) {
			for range n {
				f.CmdPipelineBarrier(c, compute, compute, 0, 1, oldBarrier, 0, nil, 0, nil)
			}
		}),
		into(probe.CopyBuffer+probe.Fresh, func(n int) {
			for range n {
				f.CmdCopyBuffer(c, b.Buffer, b.Buffer, 1, region())
			}
		}),
		into(probe.CopyBuffer+probe.Reused, func(n int) {
			for range n {
				f.CmdCopyBuffer(c, b.Buffer, b.Buffer, 1, oldRegion)
			}
		}),
	}
}

// direct are the calls that act at once.
func (b binding) direct() []probe.Case {
	f := b.Funcs
	submit, buffers := &raw.SubmitInfo{SType: raw.StructureTypeSubmitInfo}, b.Buffers()
	write := b.Write(buffers)
	nothing := func() error { return nil }
	return []probe.Case{
		{Name: probe.QueueSubmit + probe.Fresh, Layer: layer, Calls: 128, Start: nothing, Stop: b.Idle, Run: func(n int) {
			for range n {
				f.QueueSubmit(b.Queue, 1, &raw.SubmitInfo{SType: raw.StructureTypeSubmitInfo}, 0)
			}
		}},
		{Name: probe.QueueSubmit + probe.Reused, Layer: layer, Calls: 128, Start: nothing, Stop: b.Idle, Run: func(n int) {
			for range n {
				f.QueueSubmit(b.Queue, 1, submit, 0)
			}
		}},
		{Name: probe.UpdateSets + probe.Fresh, Layer: layer, Calls: 512, Start: nothing, Stop: nothing, Run: func(n int) {
			for range n {
				f.UpdateDescriptorSets(b.Binding.Device, 1, b.Write(b.Buffers()), 0, nil)
			}
		}},
		{Name: probe.UpdateSets + probe.Reused, Layer: layer, Calls: 512, Start: nothing, Stop: nothing, Run: func(n int) {
			for range n {
				f.UpdateDescriptorSets(b.Binding.Device, 1, write, 0, nil)
			}
		}},
	}
}
