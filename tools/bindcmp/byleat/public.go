package main

import (
	"leat/vk"

	"leat/vk/bindcmp/probe"
)

// publicCases are the same calls through package vk, on a device of its own,
// which checks arguments and keeps its structs. It has no descriptors.
func publicCases() ([]probe.Case, error) {
	instance, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return nil, err
	}
	device, err := instance.NewDevice(instance.PhysicalDevices()[0], vk.DeviceOptions{})
	if err != nil {
		return nil, err
	}
	buffer, err := device.NewBuffer("bindcmp", probe.TotalBytes, vk.DeviceLocal)
	if err != nil {
		return nil, err
	}
	pipeline, err := device.NewPipeline(vk.PipelineOptions{Name: "nothing", SPIRV: probe.NothingSPIRV, PushBytes: probe.ArgsBytes})
	if err != nil {
		return nil, err
	}
	pool, err := device.Compute.NewCommandPool()
	if err != nil {
		return nil, err
	}
	commands, err := pool.New()
	if err != nil {
		return nil, err
	}
	return casesOf(device, commands, pipeline, buffer), nil
}

func casesOf(device *vk.Device, c *vk.CommandBuffer, p *vk.Pipeline, buffer *vk.Buffer) []probe.Case {
	begin := func() error {
		err := c.Begin()
		c.Bind(p)
		return err
	}
	into := func(name string, call func(n int)) probe.Case {
		return probe.Case{Name: name, Layer: "leat vk", Calls: 512, Start: begin, Run: call, Stop: c.End}
	}
	return []probe.Case{
		into(probe.Dispatch, func(n int) {
			for range n {
				c.Dispatch(1, 1, 1)
			}
		}),
		into(probe.PushConstants, func(n int) {
			for range n {
				vk.Push(c, p, &probe.KernelArgs)
			}
		}),
		into(probe.Barrier+probe.Reused, func(n int) {
			for range n {
				c.Barrier()
			}
		}),
		into(probe.CopyBuffer+probe.Reused, func(n int) {
			for range n {
				c.Copy(buffer, probe.BufferBytes, buffer, 0, 256)
			}
		}),
		{Name: probe.QueueSubmit + probe.Reused, Layer: "leat vk", Calls: 128, Start: func() error { return nil }, Stop: device.WaitIdle, Run: func(n int) {
			for range n {
				device.Compute.Submit(vk.Submission{})
			}
		}},
	}
}
