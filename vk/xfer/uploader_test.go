package xfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"leat/tools/await"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// bench is a device with an uploader, and memory to upload to and read back from.
type bench struct {
	t    *testing.T
	dev  *vk.Device
	host *mem.Heap
	u    *Uploader
	dst  *vk.Buffer
}

// newBench makes a bench whose uploader has as many lanes, on the device's queues in
// turn: 0 is one for each transfer queue.
func newBench(t *testing.T, slots int, slotBytes, dstBytes int64, lanes int, o ...vktest.Option) *bench {
	t.Helper()
	b := &bench{t: t, dev: vktest.Open(t, o...)}
	var queues []*vk.Queue
	for n := range lanes {
		queues = append(queues, b.dev.Transfers[n%len(b.dev.Transfers)])
	}
	b.host = mem.NewHeap(b.dev, "host memory", 0)
	t.Cleanup(b.host.Close)
	var err error
	b.u, err = New(b.dev, b.host, Options{Slots: slots, SlotBytes: slotBytes, Queues: queues})
	b.ok(err)
	t.Cleanup(func() { b.ok(b.u.Close()) })
	b.dst, err = b.host.Alloc("destination", dstBytes, vk.DeviceLocal)
	b.ok(err)
	return b
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// read copies dst back on the compute queue once the uploads have reached ticket.
func (b *bench) read(ticket Ticket) []byte {
	b.t.Helper()
	back, err := b.dev.NewBuffer("back", b.dst.Bytes, vk.Readback)
	b.ok(err)
	defer back.Close()
	pool, err := b.dev.Compute.NewCommandPool()
	b.ok(err)
	defer pool.Close()
	c, err := pool.New()
	b.ok(err)
	done, err := b.dev.NewTimeline("read")
	b.ok(err)
	defer done.Close()
	b.ok(c.Begin())
	c.Copy(back, 0, b.dst, 0, b.dst.Bytes)
	c.HostBarrier()
	b.ok(c.End())
	b.ok(b.dev.Compute.Submit(vk.Submission{
		Commands: []*vk.CommandBuffer{c},
		Waits:    b.u.Points(ticket, nil),
		Signals:  []vk.Point{{Timeline: done, Value: 1}},
	}))
	b.ok(done.Wait(context.Background(), 1))
	return bytes.Clone(back.Mapped())
}

func fill(p []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

var queues = []struct {
	name    string
	lanes   int
	options []vktest.Option
}{{"as it is", 0, nil}, {"one queue", 0, []vktest.Option{vktest.OneQueue()}}, {"two lanes", 2, nil}}

// Many small uploads through few slots arrive whole, with rising tickets.
func TestRing(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			const slot, rounds = 1 << 12, 50
			b := newBench(t, 3, slot, slot*rounds, q.lanes, q.options...)
			want, last := make([]byte, slot*rounds), Ticket{}
			fill(want, 1)
			for k := range int64(rounds) {
				s, err := b.u.Acquire(context.Background())
				b.ok(err)
				piece := want[k*slot:][:slot]
				copy(s.Bytes(), piece)
				dst := mem.Whole(b.dst).Slice(k*slot, slot)
				ticket, err := b.u.Submit([]Copy{
					{Dst: dst.Slice(1000, slot-1000), Src: s.Buffer, SrcOff: s.Off + 1000, Bytes: slot - 1000},
					{Dst: dst, Src: s.Buffer, SrcOff: s.Off, Bytes: 1000},
				})
				b.ok(err)
				s.Release(ticket)
				if last.Covers(ticket) {
					t.Fatalf("ticket %d after %d", ticket, last)
				}
				last = last.With(ticket)
			}
			if got := b.u.Last(); got != last {
				t.Errorf("Last says %d, want %d", got, last)
			}
			if !bytes.Equal(b.read(last), want) {
				t.Error("what arrived differs")
			}
		})
	}
}

// cancelInWait makes contexts that are canceled when the host next waits for the device.
func cancelInWait() (next func() context.Context, o vktest.Option) {
	var cancel atomic.Pointer[context.CancelFunc]
	next = func() context.Context {
		ctx, c := context.WithCancel(context.Background())
		cancel.Store(&c)
		return ctx
	}
	return next, vktest.Watch(func(call string) vk.Result {
		if call == "vkWaitSemaphores" {
			if c := cancel.Swap(nil); c != nil {
				(*c)()
			}
		}
		return 0
	})
}

// A slot does not come back before its copy is done.
func TestSlotWaitsForItsCopy(t *testing.T) {
	waits, wait := cancelInWait()
	b := newBench(t, 1, 4096, 64, 0, wait)
	gate, err := b.dev.NewTimeline("gate")
	b.ok(err)
	defer gate.Close()
	s, err := b.u.Acquire(context.Background())
	b.ok(err)
	ticket, err := b.u.Submit([]Copy{{Dst: mem.Whole(b.dst), Src: s.Buffer, SrcOff: s.Off, Bytes: 64}}, vk.Point{Timeline: gate, Value: 1})
	b.ok(err)
	s.Release(ticket)
	if _, err := b.u.Acquire(waits()); !errors.Is(err, context.Canceled) {
		t.Errorf("acquire of a slot in use: %v, want Canceled", err)
	}
	if err := b.u.Wait(waits(), ticket); !errors.Is(err, context.Canceled) {
		t.Errorf("the ticket is reached before the gate opened (%v)", err)
	}
	b.ok(gate.Signal(1))
	s, err = b.u.Acquire(context.Background()) // the failed Acquire kept nothing
	b.ok(err)
	if _, err := b.u.Acquire(await.Impatient(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("acquire of a slot another has: %v, want Canceled", err)
	}
	s.Release(Ticket{})
	s.Release(Ticket{})
	s, err = b.u.Acquire(context.Background())
	b.ok(err)
	s.Release(Ticket{})
}

// Submit goes in batches, shared by the lanes, more than there are command buffers.
func TestSubmit(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			const n = 1 << 18
			b := newBench(t, 1, 4096, n, q.lanes, q.options...)
			b.u.most, b.u.split = 1234, 5000
			src, err := b.host.AllocHost("host tier", n)
			b.ok(err)
			fill(src.Mapped(), 2)
			whole := mem.Whole(b.dst)
			ticket, err := b.u.Submit([]Copy{
				{Dst: whole, Src: src, Bytes: 100_000},
				{Dst: whole.Slice(5, 0), Src: src, Bytes: 0},
				{Dst: whole.Slice(100_000, n-100_000), Src: src, SrcOff: 100_000, Bytes: n - 100_000},
			})
			b.ok(err)
			for i, l := range b.u.lanes {
				if ticket[i] < 2 || ticket[i] != l.value || l.value <= maxCommands && len(b.u.lanes) == 1 {
					t.Errorf("lane %d of %d: ticket %d, last value %d", i, len(b.u.lanes), ticket[i], l.value)
				}
			}
			if !bytes.Equal(b.read(ticket), src.Mapped()) {
				t.Error("what arrived differs")
			}
		})
	}
}

// With all command buffers waiting, Submit waits too, and goes on after.
func TestThrottle(t *testing.T) {
	waiting := make(chan struct{})
	var once sync.Once
	b := newBench(t, 1, 4096, 64, 1, vktest.Watch(func(call string) vk.Result {
		if call == "vkWaitSemaphores" {
			once.Do(func() { close(waiting) })
		}
		return 0
	}))
	gate, err := b.dev.NewTimeline("gate")
	b.ok(err)
	defer gate.Close()
	src, err := b.host.AllocHost("host tier", 64)
	b.ok(err)
	fill(src.Mapped()[:64], 3)
	one := []Copy{{Dst: mem.Whole(b.dst), Src: src, Bytes: 64}}
	for range maxCommands {
		_, err := b.u.Submit(one, vk.Point{Timeline: gate, Value: 1})
		b.ok(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.u.Submit(one)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("one more was taken at once (%v)", err)
	case <-waiting:
	}
	b.ok(gate.Signal(1))
	b.ok(<-done)
	if !bytes.Equal(b.read(b.u.Last()), src.Mapped()[:64]) {
		t.Error("what arrived differs")
	}
}

// Uploading allocates nothing once the command buffers are there.
func TestNoAllocation(t *testing.T) {
	b := newBench(t, 2, 4096, 1<<16, 2)
	b.u.split = 4096
	told := 0
	b.u.times.done = func(d *Done) {
		d.Times()
		told++
	}
	src, err := b.host.AllocHost("host tier", 1<<16)
	b.ok(err)
	copies := []Copy{{Dst: mem.Whole(b.dst), Src: src, Bytes: 1 << 16}}
	upload := func() {
		s, err := b.u.Acquire(context.Background())
		b.ok(err)
		ticket, err := b.u.Submit(copies)
		b.ok(err)
		s.Release(ticket)
		b.ok(b.u.Wait(context.Background(), ticket))
		b.ok(b.u.Collect())
	}
	upload()
	if n := testing.AllocsPerRun(20, upload); n > 0 && !raceEnabled {
		t.Errorf("%v allocations an upload", n)
	}
	if want := 2 * 22; told != want {
		t.Errorf("told of %d submissions, want %d", told, want)
	}
}

func TestConcurrent(t *testing.T) {
	const slot, workers, rounds = 1 << 12, 6, 20
	b := newBench(t, 4, slot, slot*workers*rounds, 2)
	want := make([]byte, b.dst.Bytes)
	fill(want, 4)
	var mu sync.Mutex
	seen := map[Ticket]bool{}
	var wg sync.WaitGroup
	for w := range int64(workers) {
		wg.Go(func() {
			for k := range int64(rounds) {
				s, err := b.u.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				off := (w*rounds + k) * slot
				copy(s.Bytes(), want[off:off+slot])
				ticket, err := b.u.Submit([]Copy{{Dst: mem.Whole(b.dst).Slice(off, slot), Src: s.Buffer, SrcOff: s.Off, Bytes: slot}})
				s.Release(ticket)
				mu.Lock()
				if err != nil || seen[ticket] {
					t.Errorf("ticket %d, %v", ticket, err)
				}
				seen[ticket] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(b.read(b.u.Last()), want) {
		t.Error("what arrived differs")
	}
}

func TestErrors(t *testing.T) {
	b := newBench(t, 1, 4096, 64, 0)
	whole := mem.Whole(b.dst)
	src := b.u.staging
	for _, c := range []struct {
		name string
		copy Copy
	}{
		{"past the source", Copy{Dst: whole, Src: src, SrcOff: src.Bytes - 4, Bytes: 5}},
		{"before the source", Copy{Dst: whole, Src: src, SrcOff: -1, Bytes: 5}},
		{"past the span", Copy{Dst: whole.Slice(60, 4), Src: src, Bytes: 5}},
		{"past the buffer", Copy{Dst: mem.Span{Buffer: b.dst, Off: 60, Bytes: 10}, Src: src, Bytes: 10}},
		{"nowhere", Copy{Src: src, Bytes: 1}},
		{"from nowhere", Copy{Dst: whole, Bytes: 1}},
		{"less than nothing", Copy{Dst: whole, Src: src, Bytes: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if ticket, err := b.u.Submit([]Copy{c.copy}); err == nil {
				t.Errorf("accepted, ticket %d", ticket)
			}
		})
	}
	for _, o := range []Options{{Slots: 0, SlotBytes: 4096}, {Slots: 1, SlotBytes: 64}} {
		if _, err := New(b.dev, b.host, o); err == nil {
			t.Errorf("an uploader was made with %+v", o)
		}
	}
	small := mem.NewHeap(b.dev, "host memory", 100)
	var e *mem.BudgetError
	if _, err := New(b.dev, small, Options{Slots: 2, SlotBytes: 1 << 20}); !errors.As(err, &e) {
		t.Errorf("slots over budget: %v, want a BudgetError", err)
	}
	if small.Used() != 0 {
		t.Errorf("the failed uploader left %d bytes", small.Used())
	}
	b.ok(b.u.Close())
	b.ok(b.u.Close())
	if _, err := b.u.Acquire(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire after Close: %v", err)
	}
	if _, err := b.u.Submit(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("submit after Close: %v", err)
	}
}

// The lanes' parts of a submission are its copies, each byte once, in halves.
func TestShare(t *testing.T) {
	u := &Uploader{lanes: make([]*lane, 2)}
	src := &vk.Buffer{Bytes: 1 << 20}
	copies := []Copy{{Dst: mem.Span{Off: 7, Bytes: 3}, Src: src, Bytes: 3}, {Dst: mem.Span{Off: 100, Bytes: 20000}, Src: src, SrcOff: 50, Bytes: 20000}}
	u.share(copies, 20003)
	if got := fmt.Sprint(describe(u.parts[0]), describe(u.parts[1])); got != "[7+3<0 100+12285<50] [12385+7715<12335]" {
		t.Errorf("parts %s", got)
	}
	u.share(copies[:1], 3)
	if got := fmt.Sprint(describe(u.parts[0]), describe(u.parts[1])); got != "[7+3<0] []" {
		t.Errorf("parts of a small one: %s", got)
	}
}

func describe(copies []Copy) (list []string) {
	for _, c := range copies {
		list = append(list, fmt.Sprintf("%d+%d<%d", c.Dst.Off, c.Bytes, c.SrcOff))
	}
	return list
}

func TestTicket(t *testing.T) {
	a, b := Ticket{3, 1}, Ticket{2, 4}
	if a.With(b) != (Ticket{3, 4}) || a.Covers(b) || !a.Covers(Ticket{}) || !a.With(b).Covers(a) {
		t.Errorf("with %v, covers %v", a.With(b), a.Covers(b))
	}
}

func TestCursor(t *testing.T) {
	c := cursor{copies: []Copy{{Bytes: 0}, {Dst: mem.Span{Off: 100}, SrcOff: 10, Bytes: 25}, {Dst: mem.Span{Off: 7}, Bytes: 3}, {Bytes: 0}}}
	var got []string
	for !c.done() {
		k, n := c.next(10)
		got = append(got, fmt.Sprint(k.Dst.Off, k.SrcOff, n))
	}
	want := []string{"100 10 10", "110 20 10", "120 30 5", "7 0 3"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pieces %v, want %v", got, want)
	}
}

// Pieces of pinned memory to the device, each with its own ticket.
func BenchmarkSubmit(b *testing.B) {
	for _, mib := range []int64{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			const ring = 256 << 20
			dev, n := vktest.Open(b), mib<<20
			host := mem.NewHeap(dev, "host memory", 0)
			defer host.Close()
			u, err := New(dev, host, Options{Slots: 1, SlotBytes: 4096})
			if err != nil {
				b.Fatal(err)
			}
			defer u.Close()
			src, err := host.AllocHost("host tier", n)
			if err != nil {
				b.Fatal(err)
			}
			dst, err := host.Alloc("ring", ring, vk.DeviceLocal)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(n)
			b.ReportAllocs()
			copies := []Copy{{Src: src, Bytes: n}}
			b.ResetTimer()
			for i := range int64(b.N) {
				copies[0].Dst = mem.Whole(dst).Slice(i*n%ring, n)
				if _, err := u.Submit(copies); err != nil {
					b.Fatal(err)
				}
			}
			if err := u.Wait(context.Background(), u.Last()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
		})
	}
}
