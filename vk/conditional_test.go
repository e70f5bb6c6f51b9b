package vk_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"leat/vk"
)

// conditional is a rig with a pipeline that writes a word, or no test where the device has no conditions.
func conditional(t *testing.T) (*rig, func(c *vk.CommandBuffer, b *vk.Buffer, off int64, v uint32)) {
	t.Helper()
	r := newRig(t)
	if !r.dev.Features.ConditionalRendering {
		t.Skip("the device has no conditional rendering")
	}
	o := probeOptions
	o.Spec = []uint32{32, 1, 0}
	p := r.pipeline(o)
	return r, func(c *vk.CommandBuffer, b *vk.Buffer, off int64, v uint32) {
		c.Bind(p)
		vk.Push(c, p, &probeArgs{b.Address + uint64(off), 1, v})
		c.Dispatch(1, 1, 1)
	}
}

// Words of the buffer of the tests: what the condition's neighbours are, too, must not matter.
const (
	wordAt  = 4 * 5
	plainAt = 4 * 16 // written by a dispatch that is not conditional
	copyAt  = 4 * 17 // and by a fill in between
	outAt   = 4 * 32
)

func TestConditional(t *testing.T) {
	r, write := conditional(t)
	for _, c := range []struct {
		word, later uint32 // what the host writes, and what then the device does
		by          string
		runs        bool
	}{
		{0, 0, "", false}, {1, 1, "", true}, {1 << 31, 0, "", true}, {0x100, 0, "", true},
		{1, 0, "a dispatch", false}, {0, 1, "a dispatch", true},
		{1, 0, "a fill", false}, {0, 1, "a fill", true},
	} {
		t.Run(fmt.Sprintf("%#x, then %d by %q", c.word, c.later, c.by), func(t *testing.T) {
			for _, class := range []vk.MemoryClass{vk.DeviceLocal, vk.Readback} {
				b, back := r.buffer("condition", 256, class), r.buffer("back", 256, vk.Readback)
				r.run(func(cb *vk.CommandBuffer) {
					cb.Fill(b, 0, 256, 1^min(c.word, 1))
					cb.Barrier()
					cb.Update(b, wordAt, binary.LittleEndian.AppendUint32(nil, c.word))
					cb.Fill(b, plainAt, 256-plainAt, 7)
					cb.Barrier()
					switch c.by {
					case "a dispatch":
						write(cb, b, wordAt, c.later)
					case "a fill":
						cb.Fill(b, wordAt, 4, c.later)
					}
					cb.ConditionBarrier()
					cb.BeginConditional(b, wordAt)
					write(cb, b, outAt, 8)
					cb.Fill(b, copyAt, 4, 9)
					cb.DispatchBarrier()
					write(cb, b, outAt+4, 9)
					cb.EndConditional()
					write(cb, b, plainAt, 10)
					cb.Barrier()
					cb.Copy(back, 0, b, 0, 256)
					cb.HostBarrier()
				})
				want := map[int64]uint32{outAt: 7, outAt + 4: 7, copyAt: 9, plainAt: 10}
				if c.runs {
					want[outAt], want[outAt+4] = 8, 9
				}
				for off, v := range want {
					if got := binary.LittleEndian.Uint32(back.Mapped()[off:]); got != v {
						t.Errorf("%v: the word at %d is %d, want %d", class, off, got, v)
					}
				}
			}
		})
	}
}

// One word turns off a first dispatch, then on a second, then off a third; what is recorded once heeds it in each submission.
func TestConditionalAgain(t *testing.T) {
	r, write := conditional(t)
	b, host, back := r.buffer("condition", 256, vk.DeviceLocal), r.buffer("host", 4, vk.Upload), r.buffer("back", 256, vk.Readback)
	c := r.commands
	r.ok(c.BeginReusable())
	c.Barrier()
	c.Fill(b, outAt, 16, 7)
	c.Copy(b, wordAt, host, 0, 4)
	c.Barrier()
	for i := range int64(4) {
		if i > 0 {
			c.DispatchBarrier()
			write(c, b, wordAt, uint32(i)%2)
		}
		c.ConditionBarrier()
		c.BeginConditional(b, wordAt)
		write(c, b, outAt+4*i, 8)
		c.EndConditional()
	}
	c.Barrier()
	c.Copy(back, 0, b, 0, 256)
	c.HostBarrier()
	r.ok(c.End())
	for n := range uint32(4) {
		binary.LittleEndian.PutUint32(host.Mapped(), n%2)
		r.value++
		r.ok(r.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{c}, Signals: []vk.Point{{Timeline: r.timeline, Value: r.value}}}))
		r.ok(r.timeline.Wait(context.Background(), r.value))
		for i, want := range []uint32{7 + n%2, 8, 7, 8} {
			if got := binary.LittleEndian.Uint32(back.Mapped()[outAt+4*i:]); got != want {
				t.Errorf("submission %d: dispatch %d left %d, want %d", n, i, got, want)
			}
		}
	}
}

// What is left out leaves out what is conditional on a word that it would have written, whichever of a chain is first.
func TestConditionalChain(t *testing.T) {
	r, write := conditional(t)
	const links = 6
	for stop := range uint32(links + 1) {
		b, back := r.buffer("condition", 256, vk.DeviceLocal), r.buffer("back", 256, vk.Readback)
		r.run(func(c *vk.CommandBuffer) {
			c.Fill(b, 0, 256, 0)
			c.Barrier()
			write(c, b, wordAt, 1)
			for i := range uint32(links) {
				c.DispatchConditionBarrier()
				c.BeginConditional(b, wordAt+4*int64(i))
				write(c, b, outAt+4*int64(i), 8)
				if i+1 != stop {
					write(c, b, wordAt+4*int64(i+1), 1)
				}
				c.EndConditional()
			}
			c.Barrier()
			c.Copy(back, 0, b, 0, 256)
			c.HostBarrier()
		})
		for i := range uint32(links) {
			want := uint32(8)
			if stop > 0 && i >= stop {
				want = 0
			}
			if got := binary.LittleEndian.Uint32(back.Mapped()[outAt+4*i:]); got != want {
				t.Errorf("stopped before %d: dispatch %d left %d, want %d", stop, i, got, want)
			}
		}
	}
}

func TestConditionalErrors(t *testing.T) {
	r, write := conditional(t)
	b := r.buffer("small", 64, vk.DeviceLocal)
	for _, c := range []struct {
		name   string
		record func(c *vk.CommandBuffer)
		want   string
	}{
		{"past the end", func(c *vk.CommandBuffer) { c.BeginConditional(b, 64) }, `bytes 64 to 68 lie outside buffer "small"`},
		{"odd", func(c *vk.CommandBuffer) { c.BeginConditional(b, 2) }, "not a multiple of 4"},
		{"no buffer", func(c *vk.CommandBuffer) { c.BeginConditional(nil, 0) }, "no buffer"},
		{"nested", func(c *vk.CommandBuffer) { c.BeginConditional(b, 0); c.BeginConditional(b, 4) }, "inside of another"},
		{"not begun", func(c *vk.CommandBuffer) { c.EndConditional() }, "none has begun"},
		{"not ended", func(c *vk.CommandBuffer) { c.BeginConditional(b, 0); write(c, b, 4, 1) }, "inside of a condition"},
		{"another mistake inside", func(c *vk.CommandBuffer) { c.BeginConditional(b, 0); c.Fill(b, 2, 4, 0); c.EndConditional() }, "multiples of 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.ok(r.commands.Begin())
			c.record(r.commands)
			if err := r.commands.End(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("End says %v, want %q", err, c.want)
			}
		})
	}
	r.run(func(c *vk.CommandBuffer) {
		c.Fill(b, 0, 64, 0)
		c.ConditionBarrier()
		c.BeginConditional(b, 0)
		c.EndConditional()
	})
	r.dev.Features.ConditionalRendering = false
	r.ok(r.commands.Begin())
	r.commands.ConditionBarrier()
	if err := r.commands.End(); err == nil || !strings.Contains(err.Error(), "lacks conditionalRendering") {
		t.Errorf("without the feature End says %v", err)
	}
}
