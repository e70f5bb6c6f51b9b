package xfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

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

func newBench(t *testing.T, slots int, slotBytes, dstBytes int64, o ...vktest.Option) *bench {
	t.Helper()
	b := &bench{t: t, dev: vktest.Open(t, o...)}
	b.host = mem.NewHeap(b.dev, "host memory", 0)
	t.Cleanup(b.host.Close)
	var err error
	b.u, err = New(b.dev, b.host, slots, slotBytes)
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
func (b *bench) read(ticket uint64) []byte {
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
		Waits:    []vk.Point{{Timeline: b.u.Timeline(), Value: ticket}},
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
	options []vktest.Option
}{{"as it is", nil}, {"one queue", []vktest.Option{vktest.OneQueue()}}}

// Many small uploads through few slots arrive whole, with rising tickets.
func TestRing(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			const slot, rounds = 1 << 12, 50
			b := newBench(t, 3, slot, slot*rounds, q.options...)
			want, last := make([]byte, slot*rounds), uint64(0)
			fill(want, 1)
			for k := range int64(rounds) {
				s, err := b.u.Acquire(context.Background())
				b.ok(err)
				piece := want[k*slot:][:slot]
				copy(s.Bytes(), piece)
				dst := mem.Whole(b.dst).Slice(k*slot, slot)
				ticket, err := b.u.Submit(s, []Copy{
					{Dst: dst.Slice(1000, slot-1000), SrcOff: 1000, Bytes: slot - 1000},
					{Dst: dst, SrcOff: 0, Bytes: 1000},
				})
				b.ok(err)
				if ticket <= last {
					t.Fatalf("ticket %d after %d", ticket, last)
				}
				last = ticket
			}
			if got := b.u.Ticket(); got != last {
				t.Errorf("Ticket says %d, want %d", got, last)
			}
			if !bytes.Equal(b.read(last), want) {
				t.Error("what arrived differs")
			}
		})
	}
}

// A slot does not come back before its copy is done.
func TestSlotWaitsForItsCopy(t *testing.T) {
	b := newBench(t, 1, 64, 64)
	gate, err := b.dev.NewTimeline("gate")
	b.ok(err)
	defer gate.Close()
	s, err := b.u.Acquire(context.Background())
	b.ok(err)
	ticket, err := b.u.Submit(s, []Copy{{Dst: mem.Whole(b.dst), Bytes: 64}}, vk.Point{Timeline: gate, Value: 1})
	b.ok(err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := b.u.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire of a slot in use: %v, want DeadlineExceeded", err)
	}
	if v, err := b.u.Timeline().Value(); err != nil || v >= ticket {
		t.Errorf("the timeline is at %d before the gate opened (%v)", v, err)
	}
	b.ok(gate.Signal(1))
	s, err = b.u.Acquire(context.Background()) // the failed Acquire kept nothing
	b.ok(err)
	ctx, cancel = context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.u.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire of a slot another has: %v, want DeadlineExceeded", err)
	}
	s.Release()
	s.Release()
	s, err = b.u.Acquire(context.Background())
	b.ok(err)
	s.Release()
}

// SubmitFrom goes in pieces and batches, and gets by with few command buffers.
func TestSubmitFrom(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			const n = 1 << 18
			b := newBench(t, 1, 64, n, q.options...)
			b.u.piece, b.u.most = 999, 5000
			src, err := b.host.Alloc("host tier", n, vk.Upload)
			b.ok(err)
			fill(src.Mapped(), 2)
			whole := mem.Whole(b.dst)
			before := b.u.Ticket()
			ticket, err := b.u.SubmitFrom(src, []Copy{
				{Dst: whole, Bytes: 100_000},
				{Dst: whole.Slice(5, 0), Bytes: 0},
				{Dst: whole.Slice(100_000, n-100_000), SrcOff: 100_000, Bytes: n - 100_000},
			})
			b.ok(err)
			if batches := ticket - before; batches != (n+4999)/5000 {
				t.Errorf("%d batches, want %d", batches, (n+4999)/5000)
			}
			if len(b.u.commands) > maxCommands {
				t.Errorf("%d command buffers, want at most %d", len(b.u.commands), maxCommands)
			}
			if !bytes.Equal(b.read(ticket), src.Mapped()) {
				t.Error("what arrived differs")
			}
		})
	}
}

// With all command buffers waiting, SubmitFrom waits too, and goes on after.
func TestThrottle(t *testing.T) {
	b := newBench(t, 1, 64, 64)
	gate, err := b.dev.NewTimeline("gate")
	b.ok(err)
	defer gate.Close()
	src, err := b.host.Alloc("host tier", 64, vk.Upload)
	b.ok(err)
	fill(src.Mapped(), 3)
	one := []Copy{{Dst: mem.Whole(b.dst), Bytes: 64}}
	for range maxCommands {
		_, err := b.u.SubmitFrom(src, one, vk.Point{Timeline: gate, Value: 1})
		b.ok(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.u.SubmitFrom(src, one)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("one more was taken at once (%v)", err)
	case <-time.After(30 * time.Millisecond):
	}
	if empty, err := b.u.SubmitFrom(src, nil); err != nil || empty != maxCommands+1 { // the lock is free meanwhile
		t.Errorf("a ticket without copies: %d, %v", empty, err)
	}
	b.ok(gate.Signal(1))
	b.ok(<-done)
	if !bytes.Equal(b.read(b.u.Ticket()), src.Mapped()) {
		t.Error("what arrived differs")
	}
}

func TestConcurrent(t *testing.T) {
	const slot, workers, rounds = 1 << 10, 6, 20
	b := newBench(t, 4, slot, slot*workers*rounds)
	want := make([]byte, b.dst.Bytes)
	fill(want, 4)
	var mu sync.Mutex
	seen := map[uint64]bool{}
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
				ticket, err := b.u.Submit(s, []Copy{{Dst: mem.Whole(b.dst).Slice(off, slot), Bytes: slot}})
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
	if !bytes.Equal(b.read(b.u.Ticket()), want) {
		t.Error("what arrived differs")
	}
}

func TestErrors(t *testing.T) {
	b := newBench(t, 1, 64, 64)
	whole := mem.Whole(b.dst)
	for _, c := range []struct {
		name string
		copy Copy
	}{
		{"past the slot", Copy{Dst: whole, SrcOff: 60, Bytes: 5}},
		{"before the slot", Copy{Dst: whole, SrcOff: -1, Bytes: 5}},
		{"past the span", Copy{Dst: whole.Slice(60, 4), Bytes: 5}},
		{"past the buffer", Copy{Dst: mem.Span{Buffer: b.dst, Off: 60, Bytes: 10}, Bytes: 10}},
		{"nowhere", Copy{Bytes: 1}},
		{"less than nothing", Copy{Dst: whole, Bytes: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := b.u.Acquire(context.Background()) // back again after each failure
			b.ok(err)
			if ticket, err := b.u.Submit(s, []Copy{c.copy}); err == nil {
				t.Errorf("accepted, ticket %d", ticket)
			}
		})
	}
	if _, err := New(b.dev, b.host, 0, 64); err == nil {
		t.Error("an uploader without slots was made")
	}
	small := mem.NewHeap(b.dev, "host memory", 100)
	var e *mem.BudgetError
	if _, err := New(b.dev, small, 2, 1<<20); !errors.As(err, &e) {
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
	if _, err := b.u.SubmitFrom(b.dst, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("submit after Close: %v", err)
	}
}

func TestCursor(t *testing.T) {
	c := cursor{copies: []Copy{{Bytes: 0}, {Dst: mem.Span{Off: 100}, SrcOff: 10, Bytes: 25}, {Dst: mem.Span{Off: 7}, Bytes: 3}, {Bytes: 0}}}
	var got []string
	for !c.done() {
		_, dst, src, n := c.next(10)
		got = append(got, fmt.Sprint(dst, src, n))
	}
	want := []string{"100 10 10", "110 20 10", "120 30 5", "7 0 3"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pieces %v, want %v", got, want)
	}
}

// Pieces of pinned memory to the device, each with its own ticket.
func BenchmarkSubmitFrom(b *testing.B) {
	for _, mib := range []int64{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			const ring = 256 << 20
			dev, n := vktest.Open(b), mib<<20
			host := mem.NewHeap(dev, "host memory", 0)
			defer host.Close()
			u, err := New(dev, host, 1, 64)
			if err != nil {
				b.Fatal(err)
			}
			defer u.Close()
			src, err := host.Alloc("host tier", n, vk.Upload)
			if err != nil {
				b.Fatal(err)
			}
			dst, err := host.Alloc("ring", ring, vk.DeviceLocal)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(n)
			b.ReportAllocs()
			copies := []Copy{{Bytes: n}}
			b.ResetTimer()
			for i := range int64(b.N) {
				copies[0].Dst = mem.Whole(dst).Slice(i*n%ring, n)
				if _, err := u.SubmitFrom(src, copies); err != nil {
					b.Fatal(err)
				}
			}
			if err := u.Timeline().Wait(context.Background(), u.Ticket()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
		})
	}
}
