package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"leat/vk"
)

// Shared is a kind of memory that the CPU and the disk fill and the device then reads
// where it lies.
type Shared int

const (
	NotShared Shared = iota
	Imported         // ours, imported: takes direct reads on every driver
	Mapped           // device-local and mapped, the driver's own
)

func (s Shared) String() string { return [...]string{"not shared", "imported", "mapped"}[s] }

// AllocShared makes a buffer of memory of a kind that [ProbeShared] found.
func (h *Heap) AllocShared(what string, bytes int64, kind Shared) (*vk.Buffer, error) {
	switch kind {
	case Imported:
		return h.AllocHost(what, bytes)
	case Mapped:
		return h.Alloc(what, bytes, vk.Mapped)
	}
	return nil, fmt.Errorf("allocate %s: found memory that is %v, wanted imported or mapped", what, kind)
}

const (
	probeBytes  = 8 << 20
	probeRounds = 3
	clearly     = 0.9 // of the time that imported memory takes, at most, makes mapped memory the faster
)

// ProbeShared tries both kinds on a device that has its memory in common with the host:
// the CPU writes, the device copies out of it, and what arrives is compared. It returns
// the kind that the device reads faster, imported memory where they are alike, and
// NotShared where neither works or the device has memory of its own.
func ProbeShared(ctx context.Context, dev *vk.Device) (Shared, error) {
	if !dev.Features.UMA {
		return NotShared, nil
	}
	h := NewHeap(dev, "probe", 0)
	defer h.Close()
	p := &probe{ctx: ctx, dev: dev, heap: h}
	defer p.close()
	if err := p.open(); err != nil {
		return NotShared, fmt.Errorf("probe shared memory: %w", err)
	}
	best, least := NotShared, time.Duration(0)
	for _, kind := range []Shared{Imported, Mapped} {
		if kind == Imported && !dev.Features.HostImport {
			continue
		}
		took, err := p.try(kind)
		switch {
		case errors.Is(err, vk.ErrDeviceLost) || ctx.Err() != nil:
			return NotShared, fmt.Errorf("probe shared memory: %w", err)
		case err == nil && (best == NotShared || took.Seconds() < clearly*least.Seconds()):
			best, least = kind, took
		}
	}
	return best, nil
}

type probe struct {
	ctx      context.Context
	dev      *vk.Device
	heap     *Heap
	pool     *vk.CommandPool
	timeline *vk.Timeline
	value    uint64
	dst      *vk.Buffer
	back     *vk.Buffer
}

func (p *probe) open() (err error) {
	if p.pool, err = p.dev.Compute.NewCommandPool(); err != nil {
		return err
	}
	if p.timeline, err = p.dev.NewTimeline("probe"); err != nil {
		return err
	}
	if p.dst, err = p.heap.Alloc("probe destination", probeBytes, vk.DeviceLocal); err != nil {
		return err
	}
	p.back, err = p.heap.Alloc("probe readback", probeBytes, vk.Readback)
	return err
}

// close waits for the device, as a canceled wait did not.
func (p *probe) close() {
	if p.timeline != nil {
		_ = p.timeline.Wait(context.Background(), p.value) // a lost device is done with it
		p.timeline.Close()
	}
	if p.pool != nil {
		p.pool.Close()
	}
}

// try is the least time that the device takes to copy probeBytes out of memory of a kind.
func (p *probe) try(kind Shared) (least time.Duration, err error) {
	src, err := p.heap.AllocShared("probe source", probeBytes, kind)
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = p.timeline.Wait(context.Background(), p.value)
		p.heap.Free(src)
	}()
	for round := range probeRounds {
		m := src.Mapped()[:probeBytes]
		p.fill(m, byte(round))
		begin := time.Now()
		if err := p.copy(p.dst, src); err != nil {
			return 0, err
		}
		if took := time.Since(begin); round == 0 || took < least {
			least = took
		}
		if err := p.copy(p.back, p.dst); err != nil {
			return 0, err
		}
		if !bytes.Equal(p.back.Mapped()[:probeBytes], m) {
			return 0, fmt.Errorf("what the device reads of %v memory is not what the CPU wrote", kind)
		}
	}
	return least, nil
}

// fill makes every page another, and other in each round.
func (p *probe) fill(m []byte, round byte) {
	const page = 4096
	for i := range page {
		m[i] = byte(i*7+i>>8) + round
	}
	for at := page; at < len(m); at += page {
		copy(m[at:at+page], m[:page])
		m[at], m[at+1] = byte(at>>12), byte(at>>20)
	}
}

func (p *probe) copy(dst, src *vk.Buffer) error {
	c, err := p.pool.New()
	if err != nil {
		return err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	c.CopyBarrier()
	c.Copy(dst, 0, src, 0, probeBytes)
	c.HostBarrier()
	if err := c.End(); err != nil {
		return err
	}
	err = p.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{c}, Signals: []vk.Point{{Timeline: p.timeline, Value: p.value + 1}}})
	if err != nil {
		return err
	}
	p.value++
	return p.timeline.Wait(p.ctx, p.value)
}
