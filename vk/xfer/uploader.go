package xfer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"leat/vk"
	"leat/vk/mem"
)

const (
	pieceBytes  = 64 << 20  // longest single copy, so that several queues share the link
	batchBytes  = 256 << 20 // longest submission: 0.1 s on a slow link
	maxCommands = 64        // command buffers in flight before SubmitFrom waits
)

// ErrClosed is returned by an uploader that was closed.
var ErrClosed = errors.New("uploader is closed")

// Copy is one range to upload.
type Copy struct {
	Dst    mem.Span // only its first Bytes are written
	SrcOff int64    // in the slot or buffer
	Bytes  int64
}

// Uploader copies staging memory to device memory on the transfer queue. Its
// methods are safe for use by several goroutines.
//
// Copies are done in the order they are submitted, so the same bytes may be
// written by two submissions; within one the copies' destinations must not
// meet. That kernels are done with the old bytes is told by the waits.
//
// Where transfer and compute share a queue a wait must be for a value already
// submitted, or signalled by the host: the queue would wait for itself.
type Uploader struct {
	dev      *vk.Device
	host     *mem.Heap
	timeline *vk.Timeline
	slots    []*Slot
	piece    int64 // pieceBytes and batchBytes; tests make them small
	most     int64

	mu       sync.Mutex
	next     int // slot to acquire next
	ticket   uint64
	pool     *vk.CommandPool
	commands []*command
	command  [1]*vk.CommandBuffer // scratch of batch
	signal   [1]vk.Point
	closed   bool
}

// command is a command buffer and the ticket of its last submission.
type command struct {
	buffer *vk.CommandBuffer
	ticket uint64
}

// Slot is a piece of staging memory.
type Slot struct {
	u      *Uploader
	buffer *vk.Buffer
	free   chan struct{} // holds one token while nobody has the slot
	ticket uint64        // of its last copy
}

// New makes an uploader with slots of slotBytes each, taken from host.
func New(dev *vk.Device, host *mem.Heap, slots int, slotBytes int64) (*Uploader, error) {
	if slots < 1 {
		return nil, fmt.Errorf("make an uploader with %d staging slots: want at least one", slots)
	}
	u := &Uploader{dev: dev, host: host, piece: pieceBytes, most: batchBytes}
	if err := u.create(slots, slotBytes); err != nil {
		u.Close()
		return nil, fmt.Errorf("make an uploader: %w", err)
	}
	return u, nil
}

func (u *Uploader) create(slots int, slotBytes int64) (err error) {
	if u.timeline, err = u.dev.NewTimeline("transfer"); err != nil {
		return err
	}
	if u.pool, err = u.dev.Transfer.NewCommandPool(); err != nil {
		return err
	}
	for n := range slots {
		b, err := u.host.Alloc(fmt.Sprintf("staging slot %d", n), slotBytes, vk.Upload)
		if err != nil {
			return err
		}
		s := &Slot{u: u, buffer: b, free: make(chan struct{}, 1)}
		s.free <- struct{}{}
		u.slots = append(u.slots, s)
	}
	return nil
}

// Timeline is the one whose values are tickets.
func (u *Uploader) Timeline() *vk.Timeline { return u.timeline }

// Ticket is the last one given out, 0 before the first.
func (u *Uploader) Ticket() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ticket
}

// Acquire gives the next slot in ring order to the caller alone, who hands it
// back with Submit or Release. It waits until the slot's last copy is done.
func (u *Uploader) Acquire(ctx context.Context) (*Slot, error) {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return nil, fmt.Errorf("acquire a staging slot: %w", ErrClosed)
	}
	s := u.slots[u.next]
	u.next = (u.next + 1) % len(u.slots)
	u.mu.Unlock()
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, fmt.Errorf("acquire a staging slot: %w", ctx.Err())
	}
	if err := u.timeline.Wait(ctx, s.ticket); err != nil {
		s.Release()
		return nil, fmt.Errorf("acquire a staging slot: %w", err)
	}
	return s, nil
}

// Bytes is the slot's staging memory, to be written front to back.
func (s *Slot) Bytes() []byte { return s.buffer.Mapped() }

// Release hands the slot back without an upload.
func (s *Slot) Release() {
	select {
	case s.free <- struct{}{}:
	default: // it is free already
	}
}

// Submit uploads parts of s, once all of waits are reached, and hands s back,
// even when it fails. No copies at all still give a ticket.
func (u *Uploader) Submit(s *Slot, copies []Copy, waits ...vk.Point) (uint64, error) {
	ticket, err := u.SubmitFrom(s.buffer, copies, waits...)
	s.ticket = max(s.ticket, ticket)
	s.Release()
	return ticket, err
}

// SubmitFrom uploads parts of src, mapped memory that must stay as it is until
// the ticket is reached. When too many copies are under way it waits for one.
// A failure may come after a part was submitted; the ticket then covers that part.
func (u *Uploader) SubmitFrom(src *vk.Buffer, copies []Copy, waits ...vk.Point) (uint64, error) {
	for n := range copies {
		if err := copies[n].check(src); err != nil {
			return 0, err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, fmt.Errorf("upload from %q: %w", src.What, ErrClosed)
	}
	ticket := uint64(0)
	rest := cursor{copies: copies}
	for {
		t, err := u.batch(src, &rest, waits)
		if err != nil {
			return ticket, fmt.Errorf("upload from %q: %w", src.What, err)
		}
		ticket, waits = t, nil // the queue keeps order: later batches wait too
		if rest.done() {
			return ticket, nil
		}
	}
}

func (c *Copy) check(src *vk.Buffer) error {
	if c.SrcOff < 0 || c.Bytes < 0 || c.SrcOff > src.Bytes || c.Bytes > src.Bytes-c.SrcOff {
		return fmt.Errorf("upload %d bytes at %d of %q, which has %d", c.Bytes, c.SrcOff, src.What, src.Bytes)
	}
	if c.Dst.Buffer == nil || c.Bytes > c.Dst.Bytes {
		return fmt.Errorf("upload %d bytes of %q into a span of %d", c.Bytes, src.What, c.Dst.Bytes)
	}
	return nil
}

// batch submits the next pieces, u.most bytes at most, as one command buffer.
func (u *Uploader) batch(src *vk.Buffer, rest *cursor, waits []vk.Point) (uint64, error) {
	s := vk.Submission{Waits: waits, Signals: u.signal[:]}
	var used *command
	if !rest.done() {
		c, err := u.take()
		if err != nil {
			return 0, err
		}
		if err := u.record(c.buffer, src, rest); err != nil {
			return 0, err
		}
		used, u.command[0] = c, c.buffer
		s.Commands = u.command[:]
	}
	u.ticket++
	u.signal[0] = vk.Point{Timeline: u.timeline, Value: u.ticket}
	if err := u.dev.Transfer.Submit(s); err != nil {
		u.ticket--
		return 0, err
	}
	if used != nil {
		used.ticket = u.ticket
	}
	return u.ticket, nil
}

func (u *Uploader) record(c *vk.CommandBuffer, src *vk.Buffer, rest *cursor) error {
	if err := c.Begin(); err != nil {
		return err
	}
	c.CopyBarrier() // an earlier copy to the same place comes first
	for left := u.most; left > 0 && !rest.done(); {
		dst, dstOff, srcOff, n := rest.next(min(left, u.piece))
		c.Copy(dst, dstOff, src, srcOff, n)
		left -= n
	}
	return c.End()
}

// take finds a command buffer that is not running, makes one, or waits for the
// oldest. The lock is held; it is let go while waiting.
func (u *Uploader) take() (*command, error) {
	for {
		now, err := u.timeline.Value()
		if err != nil {
			return nil, err
		}
		oldest := uint64(0)
		for _, c := range u.commands {
			if c.ticket <= now {
				return c, nil
			}
			if oldest == 0 || c.ticket < oldest {
				oldest = c.ticket
			}
		}
		if len(u.commands) < maxCommands {
			b, err := u.pool.New()
			if err != nil {
				return nil, err
			}
			c := &command{buffer: b}
			u.commands = append(u.commands, c)
			return c, nil
		}
		u.mu.Unlock()
		err = u.timeline.Wait(context.Background(), oldest)
		u.mu.Lock()
		if err != nil {
			return nil, err
		}
		if u.closed {
			return nil, ErrClosed
		}
	}
}

// Close waits for the copies under way and frees the slots. Nobody may be
// using the uploader. It may be called twice.
func (u *Uploader) Close() error {
	u.mu.Lock()
	closed := u.closed
	u.closed = true
	u.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if u.ticket > 0 {
		err = u.timeline.Wait(context.Background(), u.ticket)
	}
	for _, s := range u.slots {
		u.host.Free(s.buffer)
	}
	if u.pool != nil {
		u.pool.Close()
	}
	if u.timeline != nil {
		u.timeline.Close()
	}
	if err != nil {
		return fmt.Errorf("close the uploader: %w", err)
	}
	return nil
}

// cursor walks copies in pieces.
type cursor struct {
	copies []Copy
	off    int64 // done of copies[0]
}

func (c *cursor) done() bool {
	for len(c.copies) > 0 && c.off == c.copies[0].Bytes {
		c.copies, c.off = c.copies[1:], 0
	}
	return len(c.copies) == 0
}

// next is the next piece, of at most limit bytes; done was false.
func (c *cursor) next(limit int64) (dst *vk.Buffer, dstOff, srcOff, n int64) {
	k := &c.copies[0]
	n = min(limit, k.Bytes-c.off)
	dst, dstOff, srcOff = k.Dst.Buffer, k.Dst.Off+c.off, k.SrcOff+c.off
	c.off += n
	return dst, dstOff, srcOff, n
}
