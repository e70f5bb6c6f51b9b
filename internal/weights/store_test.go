package weights

import (
	"bytes"
	"context"
	"errors"
	"io"
	"leat/gguf"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/await"
	"leat/tools/synth/synthetic"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// rig is a store and the step that reads it: copies instead of kernels.
type rig struct {
	t       testing.TB
	o       Options
	s       *Store
	compute *vk.Timeline
	value   uint64
	pool    *vk.CommandPool
	cb      *vk.CommandBuffer
	back    *vk.Buffer
	points  []vk.Point
	signal  [1]vk.Point
}

// setup says what a rig's store is made of.
type setup struct {
	extra    int64 // VRAM beyond the least
	host     int64 // RAM planned with
	pinned   int64 // RAM that can be had; 0: all
	lanes    int   // 0: the device's
	noImport bool
	fault    file.Fault
	blocks   int64 // bytes of a resident block; 0: the plan's choice
	progress func(done, total int64)
	shared   mem.Shared // in place, in such memory
	ring     int64      // 0: the plan's choice
}

// newRig makes a store for the model at path.
func newRig(t testing.TB, path string, c setup) *rig {
	t.Helper()
	r := &rig{t: t}
	dev := vktest.Open(t)
	if c.noImport {
		dev.Features.HostImport = false
	}
	m, err := pack.Open(path)
	r.ok(err)
	t.Cleanup(func() { m.Close() })
	h, err := arch.Read(m)
	r.ok(err)
	budget := plan.Budget{DeviceBytes: 1, HostBytes: c.host, ContextLength: 64, Chunk: 8, KVType: gguf.F16, Sweep: plan.Sweep{BlockBytes: c.blocks}, RingBytes: c.ring, InPlace: c.shared != mem.NotShared}
	_, err = plan.Make(h, m, budget)
	var least *plan.BudgetError
	if !errors.As(err, &least) {
		t.Fatal(err)
	}
	budget.DeviceBytes = least.Need + c.extra
	if c.shared != mem.NotShared && !dev.Features.UMA {
		t.Skip("the device has memory of its own")
	}
	p, err := plan.Make(h, m, budget)
	r.ok(err)
	r.compute, err = dev.NewTimeline("compute")
	r.ok(err)
	t.Cleanup(r.compute.Close)
	vram, pinned := mem.NewHeap(dev, "VRAM", 0), mem.NewHeap(dev, "host", c.pinned)
	t.Cleanup(vram.Close)
	t.Cleanup(pinned.Close)
	r.pool, err = dev.Compute.NewCommandPool()
	r.ok(err)
	t.Cleanup(r.pool.Close)
	r.cb, err = r.pool.New()
	r.ok(err)
	r.back, err = dev.NewBuffer("back", 4<<20, vk.Readback)
	r.ok(err)
	t.Cleanup(r.back.Close)
	var queues []*vk.Queue
	for range c.lanes {
		queues = append(queues, dev.Transfers[0])
	}
	r.o = Options{Device: dev, VRAM: vram, Host: pinned, Model: m, Plan: p, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Compute: r.compute, Queues: queues, Fault: c.fault, Progress: c.progress, Shared: c.shared}
	r.s, err = New(t.Context(), r.o)
	r.ok(err)
	t.Cleanup(func() {
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
		if n := vram.Used() + pinned.Used(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	})
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// step reads all units as a forward pass does; with check it compares their bytes.
func (r *rig) step(head, check bool) error {
	r.s.Begin(head)
	for i := range r.o.Plan.Units {
		u := &r.o.Plan.Units[i]
		if u.Kind == pack.Head && !head {
			continue
		}
		p, err := r.s.Units().Acquire(context.Background(), i)
		if err != nil {
			return err
		}
		if p.Streamed != (u.Tier != plan.VRAM) {
			r.t.Fatalf("%s in %v: streamed %v", u.Name, u.Tier, p.Streamed)
		}
		r.points = r.s.Units().Waits(p, r.points[:0])
		if check {
			r.read(p, u)
		}
		if !p.Streamed && !check && len(r.points) == 0 {
			continue
		}
		r.value++
		r.signal[0] = vk.Point{Timeline: r.compute, Value: r.value}
		sub := vk.Submission{Waits: r.points, Signals: r.signal[:]}
		if check {
			sub.Commands = []*vk.CommandBuffer{r.cb}
		}
		r.ok(r.o.Device.Compute.Submit(sub))
		if p.Streamed {
			r.s.Units().Release(r.value)
		}
		if check {
			r.ok(r.compute.Wait(context.Background(), r.value))
			r.compare(u)
		}
	}
	return nil
}

func (r *rig) read(p Place, u *plan.Unit) {
	for _, b := range append(slices.Clone(r.s.vram.rings), r.s.vram.blocks...) {
		if b == nil {
			continue
		}
		if off := int64(p.Address() - b.Address); p.Address() >= b.Address && off+u.Bytes <= b.Bytes {
			r.ok(r.cb.Begin())
			r.cb.Copy(r.back, 0, b, off, u.Bytes)
			r.cb.HostBarrier()
			r.ok(r.cb.End())
			return
		}
	}
	r.t.Fatalf("%s is at %#x, in none of our buffers", u.Name, p.Address())
}

func (r *rig) compare(u *plan.Unit) {
	r.t.Helper()
	for _, tensor := range u.Tensors {
		want := make([]byte, tensor.Bytes)
		r.ok(r.o.Model.ReadAt(tensor.File, want, tensor.Off))
		if !bytes.Equal(r.back.Mapped()[tensor.UnitOff:][:tensor.Bytes], want) {
			r.t.Fatalf("%s, %s: %s differs from the file", u.Name, u.Tier, tensor.Name)
		}
	}
}

func model(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 9, VocabSize: 3000}}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBytes: whatever the tiers, what a step finds is what the file holds, step after
// step, with and without the head.
func TestBytes(t *testing.T) {
	path := model(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"all from disk", setup{host: 1}},
		{"disk, some resident", setup{extra: 1 << 20, host: 1}},
		{"disk, most resident, two lanes", setup{extra: 3 << 20, host: 1, lanes: 2}},
		{"host", setup{extra: 1 << 19, host: 64 << 20}},
		{"host and disk, two lanes", setup{extra: 1 << 20, host: 3 << 20, lanes: 2}},
		{"no import", setup{extra: 1 << 20, host: 3 << 20, noImport: true}},
		{"less RAM than planned", setup{extra: 1 << 20, host: 64 << 20, pinned: 5 << 20}},
		{"all resident", setup{extra: 64 << 20, host: 1}},
		{"in place, imported, all streamed", setup{host: 1, shared: mem.Imported}},
		{"in place, imported, some streamed", setup{extra: 1 << 20, host: 1, shared: mem.Imported}},
		{"in place, mapped, some streamed", setup{extra: 1 << 20, host: 1, shared: mem.Mapped}},
		{"in place, mapped, all resident", setup{extra: 64 << 20, host: 1, shared: mem.Mapped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, path, c.setup)
			p := r.o.Plan
			t.Logf("%d units, ring %v, %d streamed bytes, %d from disk, host blocks %v", len(p.Units), p.Ring, p.StreamedBytes, p.DiskBytes, p.HostBlocks)
			for k, head := range []bool{false, true, false, false, true, true} {
				if err := r.step(head, true); err != nil {
					t.Fatalf("step %d: %v", k, err)
				}
				if k == 0 {
					r.ok(r.s.Loaded(t.Context()))
				}
			}
			if _, disk := r.s.Traffic(); c.pinned > 0 && disk < p.StreamedBytes*2 {
				t.Errorf("%d bytes came from disk though nothing could be pinned", disk)
			}
		})
	}
}

// TestTraffic: a step's bytes cross the link once, host units come from disk once, and
// a head that nobody wants does not cross it.
func TestTraffic(t *testing.T) {
	r := newRig(t, model(t), setup{extra: 1 << 19, host: 3 << 20})
	p := r.o.Plan
	var all, resident, streamedHead, hostBytes int64
	for i := range p.Units {
		u := &p.Units[i]
		for _, x := range pieces(u, 1<<30, 0) {
			all += x.n
			if u.Tier == plan.VRAM {
				resident += x.n
			} else if u.Kind == pack.Head {
				streamedHead += x.n
			}
			if u.Tier == plan.Host {
				hostBytes += x.n
			}
		}
	}
	if streamedHead == 0 || hostBytes == 0 || p.DiskBytes == 0 {
		t.Fatalf("no test: %d bytes of streamed head, %d of host tier, %d from disk", streamedHead, hostBytes, p.DiskBytes)
	}
	const steps = 10
	for k := range steps {
		r.ok(r.step(k == 4, false))
	}
	r.ok(r.compute.Wait(t.Context(), r.value))
	once := resident + (all-resident)*steps - streamedHead*(steps-1)
	ahead := int64(0)
	for _, n := range p.Ring {
		ahead += n
	}
	up, disk := r.s.Traffic()
	if up < once || up > once+ahead {
		t.Errorf("%d bytes were uploaded, wanted %d and at most a ring more", up, once)
	}
	if most := resident + hostBytes + (all-resident-hostBytes)*(steps+1); disk > most {
		t.Errorf("%d bytes were read, wanted at most %d", disk, most)
	}
}

// TestNoAllocation: once all is warm a step allocates nothing here.
func TestNoAllocation(t *testing.T) {
	r := newRig(t, model(t), setup{extra: 1 << 19, host: 3 << 20, lanes: 2})
	for range 20 {
		r.ok(r.step(true, false))
	}
	var a, b runtime.MemStats
	const steps = 50
	runtime.ReadMemStats(&a)
	for range steps {
		r.ok(r.step(true, false))
	}
	runtime.ReadMemStats(&b)
	if n := float64(b.Mallocs-a.Mallocs) / steps; n > 2 && !raceEnabled {
		t.Errorf("%.1f allocations a step of %d units", n, len(r.o.Plan.Units))
	}
}

// TestEnds: a store that fails, or is closed at any moment, hangs nobody and leaves no
// goroutine.
func TestEnds(t *testing.T) {
	path := model(t)
	before := runtime.NumGoroutine()
	bad := errors.New("bad sector")
	rng := rand.New(rand.NewPCG(3, 4))
	for k := range 12 {
		t.Run("", func(t *testing.T) {
			reads, last := atomic.Int64{}, rng.Int64N(120)
			r := newRig(t, path, setup{extra: rng.Int64N(2 << 20), host: rng.Int64N(6 << 20), lanes: k % 3, fault: func(string, int64, int64) error {
				if reads.Add(1) > last && k%2 == 0 {
					return bad
				}
				return nil
			}})
			var err error
			for range rng.IntN(6) {
				if err = r.step(rng.IntN(2) == 0, false); err != nil {
					break
				}
			}
			var e *file.Error
			if err != nil && (!errors.Is(err, bad) || !errors.As(err, &e)) {
				t.Errorf("a step ended with %v", err)
			}
			if err != nil {
				if again := r.step(true, false); !errors.Is(again, bad) {
					t.Errorf("the next step ended with %v", again)
				}
			}
			r.ok(r.compute.Wait(t.Context(), r.value))
			r.ok(r.s.Close())
			if _, err := r.s.Units().Acquire(context.Background(), 0); r.o.Plan.Units[0].Tier != plan.VRAM && err == nil {
				t.Error("a closed store gave a unit")
			}
		})
	}
	await.Goroutines(t, before)
}

// TestLoadedCanceled: waiting for a disk that does not answer ends with the context.
func TestLoadedCanceled(t *testing.T) {
	gate := make(chan struct{})
	r := newRig(t, model(t), setup{extra: 1 << 20, host: 1, fault: func(string, int64, int64) error { <-gate; return nil }})
	if err := r.s.Loaded(await.Impatient(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, wanted Canceled", err)
	}
	close(gate)
	r.ok(r.s.Loaded(t.Context())) // though a full ring stands before residents
}

// TestInPlace: there is one copy of the bytes, nothing is uploaded, and what is resident
// is read once.
func TestInPlace(t *testing.T) {
	for _, kind := range []mem.Shared{mem.Imported, mem.Mapped} {
		r := newRig(t, model(t), setup{extra: 1 << 20, host: 1, shared: kind})
		p := r.o.Plan
		if !p.InPlace || p.StreamedBytes == 0 || len(p.HostBlocks) != 0 {
			t.Fatalf("no test: %+v", p)
		}
		const steps = 5
		for range steps {
			r.ok(r.step(true, true))
		}
		up, disk := r.s.Traffic()
		var all int64
		for i := range p.Units {
			all += p.Units[i].Bytes
		}
		if most := all + p.StreamedBytes*steps; up != 0 || disk > most {
			t.Errorf("%v: %d bytes were uploaded, %d read, wanted none and at most %d", kind, up, disk, most)
		}
		if used := r.o.Host.Used(); used > 64<<10 {
			t.Errorf("%v: %d bytes of staging", kind, used)
		}
		if kind == mem.Imported && !r.s.Direct() {
			t.Errorf("%v: the disk is read through the page cache", kind)
		}
	}
}
