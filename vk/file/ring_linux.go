package file

import (
	"context"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring reads by io_uring: one goroutine submits, one takes the answers, whatever the depth.
// What can't be read directly it reads as a [Pool] would. It is safe for use by several
// goroutines.
type Ring struct {
	uring *uring
	slots []flight
	free  chan uint32 // of slots
	queue chan *Request
	stop  chan struct{}
	once  sync.Once
	wait  sync.WaitGroup // the submitter, and reads that take another way
	reap  sync.WaitGroup
	fault Fault
}

// flight is a read that the kernel has been asked for.
type flight struct {
	r     *Request
	file  *File // the part that holds it
	off   int64 // of the next byte to read, whole blocks
	want  int64 // bytes from the first block's beginning
	found int64
}

const wakeUp = ^uint64(0) // marks the answer that ends the reaper

// NewRing opens an io_uring with depth reads under way at most; fault may be nil. It fails
// where the kernel has none, or forbids it.
func NewRing(depth int, fault Fault) (*Ring, error) {
	depth = min(max(1, depth), 1024)
	u, err := openUring(uint32(depth) + 1) // one for the wake-up
	if err != nil {
		return nil, fmt.Errorf("open an io_uring: %w", err)
	}
	g := &Ring{uring: u, slots: make([]flight, depth), free: make(chan uint32, depth), queue: make(chan *Request, 64), stop: make(chan struct{}), fault: fault}
	for i := range depth {
		g.free <- uint32(i)
	}
	g.wait.Go(g.submit)
	g.reap.Go(g.answers)
	return g, nil
}

// Start is [Reader.Start].
func (g *Ring) Start(ctx context.Context, r *Request) error {
	r.ctx = ctx
	select {
	case <-g.stop:
		return ErrClosed
	default:
	}
	select {
	case g.queue <- r:
		return nil
	case <-g.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Ring) submit() {
	for {
		select {
		case <-g.stop:
			return
		case r := <-g.queue:
			select {
			case slot := <-g.free:
				g.begin(slot, r)
			case <-g.stop:
				r.done <- ErrClosed
				return
			}
		}
	}
}

// begin asks the kernel for a read, or has it done elsewhere.
func (g *Ring) begin(slot uint32, r *Request) {
	part, in := r.File.at(r.Off)
	whole := r.File.parts == nil || r.Off%r.File.stripe+r.N <= r.File.stripe
	if g.fault != nil || !whole || !part.Direct() || !aligned(r.Dst) || r.N <= 0 || in < 0 || int64(len(r.Dst)) < Room(in, r.N) || r.ctx.Err() != nil {
		g.wait.Go(func() {
			p := Pool{fault: g.fault}
			r.done <- p.one(r)
			g.free <- slot
		})
		return
	}
	skip := Skip(in)
	g.slots[slot] = flight{r: r, file: part, off: in - skip, want: skip + r.N}
	if err := g.ask(slot); err != nil {
		g.end(slot, err)
	}
}

// ask submits what is left of a flight.
func (g *Ring) ask(slot uint32) error {
	f := &g.slots[slot]
	p := f.r.Dst[f.found:Room(f.off, f.want)]
	return g.uring.submit(sqe{
		opcode: opRead, fd: int32(f.file.direct.Fd()), off: uint64(f.off + f.found),
		addr: uint64(uintptr(unsafe.Pointer(&p[0]))), len: uint32(len(p)), userData: uint64(slot),
	})
}

// answers takes what the kernel has done until the wake-up.
func (g *Ring) answers() {
	for {
		slot, res, err := g.uring.next()
		if err != nil || slot == wakeUp {
			return
		}
		g.answer(uint32(slot), res)
	}
}

func (g *Ring) answer(slot uint32, res int32) {
	f := &g.slots[slot]
	switch {
	case res == -int32(unix.EINTR), res == -int32(unix.EAGAIN):
	case res < 0:
		err := unix.Errno(-res)
		if !isRefusal(err) {
			g.end(slot, err)
			return
		}
		f.file.refused.Store(true)
		r := f.r
		*f = flight{}
		g.wait.Go(func() {
			r.done <- r.File.Read(r.ctx, r.Dst, r.Off, r.N)
			g.free <- slot
		})
		return
	default:
		f.found += int64(res)
		if f.found >= f.want {
			g.end(slot, nil)
			return
		}
		if res == 0 || f.found%Align != 0 {
			g.end(slot, io.ErrUnexpectedEOF)
			return
		}
	}
	if err := g.ask(slot); err != nil {
		g.end(slot, err)
	}
}

func (g *Ring) end(slot uint32, err error) {
	f := g.slots[slot]
	g.slots[slot] = flight{}
	if err != nil {
		skip := f.want - f.r.N
		err = &Error{Path: f.file.path, Off: f.off + skip, Found: max(0, f.found-skip), Want: f.r.N, Err: err}
	}
	f.r.done <- err
	g.free <- slot
}

// Close is [Reader.Close].
func (g *Ring) Close() {
	g.once.Do(func() {
		close(g.stop)
		for range g.slots { // all that is under way is over when all are free
			<-g.free
		}
		g.wait.Wait()
		// A ring that takes no wake-up is broken, and its reaper gone.
		_ = g.uring.submit(sqe{opcode: opNop, userData: wakeUp})
		g.reap.Wait()
		g.uring.close()
	})
	for {
		select {
		case r := <-g.queue:
			r.done <- ErrClosed
		default:
			return
		}
	}
}
