package vk_test

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"leat/vk"
	"leat/vk/vktest"
)

// Built by: glslc --target-env=vulkan1.2 -O -o probe.spv probe.comp
//
//go:embed testdata/probe.spv
var probe []byte

// probeArgs are its push constants.
type probeArgs struct {
	Dst           uint64
	Count, Offset uint32
}

var probeOptions = vk.PipelineOptions{Name: "probe", SPIRV: probe, PushBytes: 16, Spec: []uint32{32, 3, 7}}

// rig is a device with a command buffer and a timeline.
type rig struct {
	t        testing.TB
	dev      *vk.Device
	commands *vk.CommandBuffer
	timeline *vk.Timeline
	value    uint64
}

func newRig(t testing.TB, o ...vktest.Option) *rig {
	t.Helper()
	r := &rig{t: t, dev: vktest.Open(t, o...)}
	pool, err := r.dev.Compute.NewCommandPool()
	r.ok(err)
	t.Cleanup(pool.Close)
	r.commands, err = pool.New()
	r.ok(err)
	r.timeline, err = r.dev.NewTimeline("test")
	r.ok(err)
	t.Cleanup(r.timeline.Close)
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) buffer(what string, bytes int64, c vk.MemoryClass) *vk.Buffer {
	r.t.Helper()
	b, err := r.dev.NewBuffer(what, bytes, c)
	r.ok(err)
	r.t.Cleanup(b.Close)
	return b
}

func (r *rig) pipeline(o vk.PipelineOptions) *vk.Pipeline {
	r.t.Helper()
	p, err := r.dev.NewPipeline(o)
	r.ok(err)
	r.t.Cleanup(p.Close)
	return p
}

// run records, submits and waits.
func (r *rig) run(record func(c *vk.CommandBuffer)) {
	r.t.Helper()
	r.ok(r.commands.Begin())
	record(r.commands)
	r.ok(r.commands.End())
	r.value++
	r.ok(r.dev.Compute.Submit(vk.Submission{
		Commands: []*vk.CommandBuffer{r.commands},
		Signals:  []vk.Point{{Timeline: r.timeline, Value: r.value}},
	}))
	r.ok(r.timeline.Wait(context.Background(), r.value))
}

func TestDispatch(t *testing.T) {
	r := newRig(t)
	const n = 1000
	for _, c := range []struct {
		name         string
		spec         []uint32
		local        uint32
		factor, bias uint32
	}{
		{"constants", []uint32{32, 3, 7}, 32, 3, 7},
		{"other constants", []uint32{8, 1000, 1}, 8, 1000, 1},
		{"defaults after the first", []uint32{16}, 16, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := probeOptions
			o.Spec = c.spec
			p, out, back := r.pipeline(o), r.buffer("out", 4*n+4, vk.DeviceLocal), r.buffer("back", 4*n+4, vk.Readback)
			r.run(func(cb *vk.CommandBuffer) {
				cb.BeginLabel("probe")
				cb.Fill(out, 0, 4*n+4, 0xbeef)
				cb.Barrier()
				cb.Update(out, 4*n, []byte{0xad, 0xde, 0, 0})
				cb.Barrier()
				cb.Bind(p)
				vk.Push(cb, p, &probeArgs{out.Address, n, 11})
				cb.Dispatch((n+c.local-1)/c.local, 1, 1)
				cb.Barrier()
				cb.Copy(back, 0, out, 0, 4*n+4)
				cb.HostBarrier()
				cb.EndLabel()
			})
			for i := range uint32(n) {
				if got, want := binary.LittleEndian.Uint32(back.Mapped()[4*i:]), i*c.factor+c.bias+11; got != want {
					t.Fatalf("word %d is %d, want %d", i, got, want)
				}
			}
			if got := binary.LittleEndian.Uint32(back.Mapped()[4*n:]); got != 0xdead {
				t.Errorf("the word after the end is %#x: it was written over", got)
			}
		})
	}
}

func TestPipelineErrors(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name   string
		change func(o *vk.PipelineOptions)
		want   string
	}{
		{"too many push constants", func(o *vk.PipelineOptions) { o.PushBytes = 4096 }, "4096 bytes of push constants"},
		{"odd push constants", func(o *vk.PipelineOptions) { o.PushBytes = 14 }, "multiple of 4"},
		{"no shader", func(o *vk.PipelineOptions) { o.SPIRV = nil }, "not SPIR-V"},
		{"not a shader", func(o *vk.PipelineOptions) { o.SPIRV = make([]byte, 64) }, "not SPIR-V"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := probeOptions
			c.change(&o)
			_, err := r.dev.NewPipeline(o)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"probe"`) {
				t.Errorf("error %v, want one with %q and the pipeline's name", err, c.want)
			}
		})
	}
}

func TestSubgroupSize(t *testing.T) {
	r := newRig(t)
	l := r.dev.Physical.Limits
	o := probeOptions
	for _, c := range []struct {
		name      string
		ask, want int
	}{
		{"the driver's choice", 0, 0},
		{"the largest", l.SubgroupMax, l.SubgroupMax},
		{"too large", 4096, 0},
	} {
		o.SubgroupSize, o.Spec = c.ask, []uint32{uint32(max(32, l.SubgroupMax))}
		if p := r.pipeline(o); p.SubgroupSize != c.want {
			t.Errorf("%s: asked for %d, got %d, want %d", c.name, c.ask, p.SubgroupSize, c.want)
		}
	}
}

// Wrong commands are told by End, and such a command buffer is not submitted.
func TestRecordingErrors(t *testing.T) {
	r := newRig(t)
	p, b := r.pipeline(probeOptions), r.buffer("small", 64, vk.DeviceLocal)
	q, err := r.dev.NewQueryPool(1)
	r.ok(err)
	defer q.Close()
	for _, c := range []struct {
		name   string
		record func(c *vk.CommandBuffer)
		want   string
	}{
		{"copy past the end", func(c *vk.CommandBuffer) { c.Copy(b, 60, b, 0, 8) }, `bytes 60 to 68 lie outside buffer "small"`},
		{"copy from below", func(c *vk.CommandBuffer) { c.Copy(b, 0, b, -4, 4) }, "copy from"},
		{"copy to nothing", func(c *vk.CommandBuffer) { c.Copy(nil, 0, b, 0, 4) }, "no buffer"},
		{"odd update", func(c *vk.CommandBuffer) { c.Update(b, 0, make([]byte, 6)) }, "multiples of 4"},
		{"update past the end", func(c *vk.CommandBuffer) { c.Update(b, 32, make([]byte, 36)) }, `bytes 32 to 68 lie outside buffer "small"`},
		{"odd fill", func(c *vk.CommandBuffer) { c.Fill(b, 2, 4, 0) }, "multiples of 4"},
		{"too much pushed", func(c *vk.CommandBuffer) { c.PushConstants(p, make([]byte, 20)) }, `push 20 bytes to pipeline "probe", which takes 16`},
		{"too many workgroups", func(c *vk.CommandBuffer) { c.Bind(p); c.Dispatch(1, 1<<31+1, 1) }, "workgroups"},
		{"no such timestamp", func(c *vk.CommandBuffer) { c.WriteTimestamp(q, 1) }, "timestamp 1 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.ok(r.commands.Begin())
			c.record(r.commands)
			r.commands.Barrier() // skipped
			if err := r.commands.End(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("End says %v, want %q", err, c.want)
			}
			if err := r.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{r.commands}}); err == nil {
				t.Error("it was submitted")
			}
		})
	}
	r.commands.Barrier()
	if err := r.commands.End(); err == nil {
		t.Error("recording without Begin was accepted")
	}
	r.run(func(c *vk.CommandBuffer) { c.Barrier() }) // Begin makes it usable again
}

func TestTimestamps(t *testing.T) {
	r := newRig(t)
	if r.dev.Compute.TimestampBits == 0 {
		t.Skip("the compute queue has no timestamps")
	}
	q, err := r.dev.NewQueryPool(3)
	r.ok(err)
	defer q.Close()
	p, out := r.pipeline(probeOptions), r.buffer("out", 4<<16, vk.DeviceLocal)
	begun := time.Now()
	r.run(func(c *vk.CommandBuffer) {
		c.ResetQueries(q, 0, q.Count)
		c.WriteTimestamp(q, 0)
		c.Bind(p)
		vk.Push(c, p, &probeArgs{out.Address, 1 << 16, 0})
		c.Dispatch(1<<16/32, 1, 1)
		c.WriteTimestamp(q, 1)
	})
	ticks := make([]uint64, 2)
	r.ok(q.Read(0, ticks))
	if d := q.Duration(ticks[0], ticks[1]); d <= 0 || d > time.Since(begun) {
		t.Errorf("the dispatch took %v of %v", d, time.Since(begun))
	}
	if err := q.Read(2, ticks[:1]); !errors.Is(err, vk.ErrNotReady) {
		t.Errorf("an unwritten timestamp reads as %v, want ErrNotReady", err)
	}
	if err := q.Read(2, ticks); err == nil {
		t.Error("read past the end")
	}
	if r.dev.Features.HostQueryReset {
		r.ok(q.Reset(0, 1))
		if err := q.Read(0, ticks[:1]); !errors.Is(err, vk.ErrNotReady) {
			t.Errorf("after a reset: %v, want ErrNotReady", err)
		}
		r.ok(q.Read(1, ticks[:1])) // it was not asked for
		if err := q.Reset(2, 2); err == nil {
			t.Error("reset past the end")
		}
	}
}

// A timestamp is taken between the submission and its end, on the host's clock too.
func TestClock(t *testing.T) {
	r := newRig(t)
	if r.dev.Compute.TimestampBits == 0 {
		t.Skip("the compute queue has no timestamps")
	}
	q, err := r.dev.NewQueryPool(1)
	r.ok(err)
	defer q.Close()
	var last time.Time
	for range 20 {
		before := time.Now()
		r.run(func(c *vk.CommandBuffer) {
			c.ResetQueries(q, 0, 1)
			c.WriteTimestamp(q, 0)
		})
		after := time.Now()
		ticks := make([]uint64, 1)
		r.ok(q.Read(0, ticks))
		r.dev.Clock.Saw(ticks[0], before, after)
		at, ok := r.dev.Clock.At(ticks[0])
		reading := 50*time.Microsecond + r.dev.Clock.Width()
		if !ok || at.Before(before.Add(-reading)) || at.After(after.Add(reading)) || at.Before(last) {
			t.Fatalf("mapped to %v after the submission, which ended after %v", at.Sub(before), after.Sub(before))
		}
		last = at
	}
}

// Recording and submitting a step makes no garbage.
func TestAllocations(t *testing.T) {
	if raceOn {
		t.Skip("not under the race detector")
	}
	r := newRig(t)
	p, a, b := r.pipeline(probeOptions), r.buffer("a", 4096, vk.DeviceLocal), r.buffer("b", 4096, vk.DeviceLocal)
	ctx := context.Background()
	commands := []*vk.CommandBuffer{r.commands}
	step := func() {
		c := r.commands
		r.ok(c.Begin())
		for range 10 {
			c.Bind(p)
			vk.Push(c, p, &probeArgs{a.Address, 1024, 1})
			c.Dispatch(32, 1, 1)
			c.Barrier()
			c.Copy(b, 0, a, 0, 4096)
			c.Barrier()
			c.Fill(a, 0, 64, 1)
			c.Barrier()
		}
		c.HostBarrier()
		r.ok(c.End())
		r.value++
		r.ok(r.dev.Compute.Submit(vk.Submission{
			Commands: commands,
			Waits:    []vk.Point{{Timeline: r.timeline, Value: r.value - 1}},
			Signals:  []vk.Point{{Timeline: r.timeline, Value: r.value}},
		}))
		r.ok(r.timeline.Wait(ctx, r.value))
		_, err := r.timeline.Value()
		r.ok(err)
	}
	step()
	// Nothing of ours allocates; the runtime's own threads and pools may, now and then.
	if n := testing.AllocsPerRun(200, step); n >= 1 {
		t.Errorf("%v allocations a step, want none", n)
	}
}

func BenchmarkRecordDispatch(b *testing.B) {
	r := newRig(b)
	p, buf := r.pipeline(probeOptions), r.buffer("a", 4096, vk.DeviceLocal)
	r.ok(r.commands.Begin())
	b.ReportAllocs()
	for n := range b.N {
		if n%10000 == 9999 {
			r.ok(r.commands.End())
			r.ok(r.commands.Begin())
		}
		r.commands.Bind(p)
		vk.Push(r.commands, p, &probeArgs{buf.Address, 32, 1})
		r.commands.Dispatch(1, 1, 1)
		r.commands.Barrier()
	}
	r.ok(r.commands.End())
}
