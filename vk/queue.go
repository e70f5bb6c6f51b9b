package vk

import (
	"fmt"
	"sync"

	"leat/vk/internal/raw"
)

// Queue runs command buffers in the order they are submitted, as far as their
// barriers and waits demand. Its methods are safe for use by several goroutines.
type Queue struct {
	Family        int
	TimestampBits int // how many bits of a timestamp count; 0: no timestamps

	dev     *Device
	name    string // "compute"
	what    string // "the compute queue", for errors
	handle  raw.Queue
	compute bool

	mu     sync.Mutex // Vulkan wants one submitter at a time
	submit submitBlock
}

// submitBlock is what one vkQueueSubmit reads. It lives as long as its queue,
// so that a submission allocates nothing once the slices have grown.
type submitBlock struct {
	info                 raw.SubmitInfo
	timeline             raw.TimelineSemaphoreSubmitInfo
	commands             []raw.CommandBuffer
	waits, signals       []raw.Semaphore
	waitVals, signalVals []uint64
	stages               []raw.PipelineStageFlags
}

// Submission is work for a queue: first the waits, then the commands, then the
// signals. It may have no commands. The value of a signal must be higher than
// any value its timeline has or was promised. A value that is waited for may
// be promised later, but then, on hardware with one queue, never by a later
// submission to that same queue: it would wait for itself.
type Submission struct {
	Commands       []*CommandBuffer
	Waits, Signals []Point
}

// Point is a value on a timeline.
type Point struct {
	Timeline *Timeline
	Value    uint64
}

func (d *Device) newQueue(family, index int, name string) *Queue {
	f := d.Physical.QueueFamilies[family]
	q := &Queue{Family: family, TimestampBits: f.TimestampBits, dev: d, name: name, what: "the " + name + " queue", compute: f.Compute}
	d.fn.GetDeviceQueue(d.handle, uint32(family), uint32(index), &q.handle)
	d.nameObject(raw.ObjectTypeQueue, uint64(q.handle), name+" queue")
	q.submit.info.SType = raw.StructureTypeSubmitInfo
	q.submit.timeline.SType = raw.StructureTypeTimelineSemaphoreSubmitInfo
	q.submit.info.PNext = raw.Ptr(&q.submit.timeline)
	return q
}

// Submit hands s to the device and returns at once.
func (q *Queue) Submit(s Submission) error {
	for _, c := range s.Commands {
		if c.state != executable {
			return fmt.Errorf("submit to %s: a command buffer is %v, want ended without error", q.what, c.state)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &q.submit
	b.fill(s)
	return q.dev.call("vkQueueSubmit", q.what, func() Result { return q.dev.fn.QueueSubmit(q.handle, 1, &b.info, 0) })
}

func (b *submitBlock) fill(s Submission) {
	b.commands, b.waits, b.signals = b.commands[:0], b.waits[:0], b.signals[:0]
	b.waitVals, b.signalVals, b.stages = b.waitVals[:0], b.signalVals[:0], b.stages[:0]
	for _, c := range s.Commands {
		b.commands = append(b.commands, c.handle)
	}
	for _, p := range s.Waits {
		b.waits, b.waitVals = append(b.waits, p.Timeline.handle), append(b.waitVals, p.Value)
		b.stages = append(b.stages, raw.PipelineStageAllCommandsBit)
	}
	for _, p := range s.Signals {
		b.signals, b.signalVals = append(b.signals, p.Timeline.handle), append(b.signalVals, p.Value)
	}
	b.info.CommandBufferCount, b.info.PCommandBuffers = first(b.commands)
	b.info.WaitSemaphoreCount, b.info.PWaitSemaphores = first(b.waits)
	_, b.info.PWaitDstStageMask = first(b.stages)
	b.info.SignalSemaphoreCount, b.info.PSignalSemaphores = first(b.signals)
	b.timeline.WaitSemaphoreValueCount, b.timeline.PWaitSemaphoreValues = first(b.waitVals)
	b.timeline.SignalSemaphoreValueCount, b.timeline.PSignalSemaphoreValues = first(b.signalVals)
}

// first gives a slice as C wants it.
func first[T any](s []T) (uint32, *T) {
	if len(s) == 0 {
		return 0, nil
	}
	return uint32(len(s)), &s[0]
}
