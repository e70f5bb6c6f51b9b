package xfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"leat/vk"
	"leat/vk/mem"
)

const (
	batchBytes  = 256 << 20 // longest submission: 0.1 s on a slow link
	splitBytes  = 8 << 20   // from here on a submission is shared by the lanes
	maxCommands = 64        // command buffers of a lane in flight before Submit waits
)

// ErrClosed is returned by an uploader that was closed.
var ErrClosed = errors.New("uploader is closed")

// Copy is one range to upload.
type Copy struct {
	Dst    mem.Span // only its first Bytes are written
	Src    *vk.Buffer
	SrcOff int64
	Bytes  int64
	Tag    uint64 // what the caller likes to find in Done
}

// Options are what an Uploader is made of.
type Options struct {
	Slots     int
	SlotBytes int64       // a multiple of 4096
	Queues    []*vk.Queue // one lane each, at most MaxLanes; nil: the device's transfer queues

	// Clocked has copies timed by the device's clock where it has one. Each submission then
	// waits for the end of the one before, which costs some percent of the link.
	Clocked bool

	// Done is told of submissions in the order in which they end on their lane, by whoever
	// calls the uploader, one at a time. It may not call the uploader, nor keep what it is
	// given. nil: nobody is.
	Done func(*Done)
}

// Uploader copies pinned host memory to device memory. Its methods are safe for use
// by several goroutines.
//
// Copies of one lane are done in the order they are submitted, those of two lanes in
// any order: that old bytes may be overwritten, whether kernels read them or another
// submission wrote them, is told by the waits.
//
// Where transfer and compute share a queue a wait must be for a value already
// submitted, or signalled by the host: the queue would wait for itself.
type Uploader struct {
	host    *mem.Heap
	staging *vk.Buffer
	slots   []*Slot
	lanes   []*lane
	most    int64 // batchBytes and splitBytes; tests make them small
	split   int64
	times   times

	mu     sync.Mutex
	next   int // slot to acquire next
	turn   int // lane of the next small submission
	parts  [MaxLanes][]Copy
	closed bool
}

// Slot is a piece of staging memory.
type Slot struct {
	Buffer *vk.Buffer
	Off    int64 // of its first byte in Buffer
	bytes  []byte
	free   chan struct{} // holds one token while nobody has the slot
	ticket Ticket        // of its last copy
}

// New makes an uploader whose staging memory is taken from host.
func New(dev *vk.Device, host *mem.Heap, o Options) (*Uploader, error) {
	if o.Slots < 1 || o.SlotBytes < 1 || o.SlotBytes%4096 != 0 {
		return nil, fmt.Errorf("make an uploader with %d staging slots of %d bytes: want at least one, of whole pages", o.Slots, o.SlotBytes)
	}
	if o.Queues == nil {
		o.Queues = dev.Transfers
	}
	u := &Uploader{host: host, most: batchBytes, split: splitBytes}
	if err := u.create(dev, o); err != nil {
		u.Close()
		return nil, fmt.Errorf("make an uploader: %w", err)
	}
	return u, nil
}

func (u *Uploader) create(dev *vk.Device, o Options) (err error) {
	o.Queues = o.Queues[:min(len(o.Queues), MaxLanes)]
	u.times.clock, u.times.done = dev.Clock, o.Done
	u.times.stamped = o.Clocked && !slices.ContainsFunc(o.Queues, func(q *vk.Queue) bool { return !stamps(dev, q) })
	for _, q := range o.Queues {
		l, err := newLane(dev, q, len(u.lanes), &u.times)
		if err != nil {
			return err
		}
		u.lanes = append(u.lanes, l)
	}
	if u.staging, err = u.host.AllocHost("staging", int64(o.Slots)*o.SlotBytes); err != nil {
		return err
	}
	for n := range int64(o.Slots) {
		at := n * o.SlotBytes
		s := &Slot{Buffer: u.staging, Off: at, bytes: u.staging.Mapped()[at : at+o.SlotBytes : at+o.SlotBytes], free: make(chan struct{}, 1)}
		s.free <- struct{}{}
		u.slots = append(u.slots, s)
	}
	return nil
}

// Points appends what work that reads t's bytes must wait for.
func (u *Uploader) Points(t Ticket, points []vk.Point) []vk.Point {
	for i, l := range u.lanes {
		if t[i] > 0 {
			points = append(points, vk.Point{Timeline: l.timeline, Value: t[i]})
		}
	}
	return points
}

// Wait returns when t is reached, when ctx is done, or when the device is lost.
func (u *Uploader) Wait(ctx context.Context, t Ticket) error {
	for i, l := range u.lanes {
		if t[i] > 0 {
			if err := l.timeline.Wait(ctx, t[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Last is the ticket of all that was submitted.
func (u *Uploader) Last() (t Ticket) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, l := range u.lanes {
		t[i] = l.value
	}
	return t
}

// Acquire gives the next slot in ring order to the caller alone, who hands it back
// with Release. It waits until the slot's last copy is done.
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
	if err := u.Wait(ctx, s.ticket); err != nil {
		s.Release(Ticket{})
		return nil, fmt.Errorf("acquire a staging slot: %w", err)
	}
	return s, nil
}

// Bytes is the slot's staging memory.
func (s *Slot) Bytes() []byte { return s.bytes }

// Release hands the slot back, to be used again once t, the ticket of the copies from
// it, is reached. Releasing twice is no harm.
func (s *Slot) Release(t Ticket) {
	s.ticket = s.ticket.With(t)
	select {
	case s.free <- struct{}{}:
	default: // it is free already
	}
}

// Reclaim takes back every slot, whoever has it: for when those who had them are gone.
func (u *Uploader) Reclaim() {
	for _, s := range u.slots {
		s.Release(Ticket{})
	}
}

// Submit uploads copies once all of waits are reached. Large ones are shared by the
// lanes. When too many are under way it waits for one. After a failure the ticket
// covers the part that was submitted.
func (u *Uploader) Submit(copies []Copy, waits ...vk.Point) (t Ticket, err error) {
	total := int64(0)
	for n := range copies {
		if err := copies[n].check(); err != nil {
			return t, err
		}
		total += copies[n].Bytes
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return t, fmt.Errorf("upload %d bytes: %w", total, ErrClosed)
	}
	if len(u.lanes) == 1 || total < u.split {
		u.turn = (u.turn + 1) % len(u.lanes)
		t[u.turn], err = u.lanes[u.turn].submit(copies, u.most, waits)
		return t, uploadError(total, err)
	}
	u.share(copies, total)
	for i, l := range u.lanes {
		if t[i], err = l.submit(u.parts[i], u.most, waits); err != nil {
			break
		}
	}
	return t, uploadError(total, err)
}

func uploadError(bytes int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("upload %d bytes: %w", bytes, err)
}

// share cuts copies of total bytes into one list for each lane, equal but for pages.
func (u *Uploader) share(copies []Copy, total int64) {
	part := (total/int64(len(u.lanes)) + 4095) / 4096 * 4096
	lane, left := 0, part
	for i := range u.parts {
		u.parts[i] = u.parts[i][:0]
	}
	for _, c := range copies {
		for c.Bytes > 0 {
			if left == 0 && lane < len(u.lanes)-1 {
				lane, left = lane+1, part
			}
			head := c
			if lane < len(u.lanes)-1 {
				head.Bytes = min(c.Bytes, left)
			}
			u.parts[lane] = append(u.parts[lane], head)
			left -= head.Bytes
			c.Dst.Off, c.Dst.Bytes = c.Dst.Off+head.Bytes, c.Dst.Bytes-head.Bytes
			c.SrcOff, c.Bytes = c.SrcOff+head.Bytes, c.Bytes-head.Bytes
		}
	}
}

func (c *Copy) check() error {
	if c.Src == nil || c.SrcOff < 0 || c.Bytes < 0 || c.SrcOff > c.Src.Bytes || c.Bytes > c.Src.Bytes-c.SrcOff {
		what, has := "no buffer", int64(0)
		if c.Src != nil {
			what, has = c.Src.What, c.Src.Bytes
		}
		return fmt.Errorf("upload %d bytes at %d of %q, which has %d", c.Bytes, c.SrcOff, what, has)
	}
	if c.Dst.Buffer == nil || c.Bytes > c.Dst.Bytes {
		return fmt.Errorf("upload %d bytes of %q into a span of %d", c.Bytes, c.Src.What, c.Dst.Bytes)
	}
	return nil
}

// Close waits for the copies under way and frees the slots. Nobody may be using the
// uploader. It may be called twice.
func (u *Uploader) Close() error {
	last := u.Last()
	u.mu.Lock()
	closed := u.closed
	u.closed = true
	u.mu.Unlock()
	if closed {
		return nil
	}
	err := u.Wait(context.Background(), last)
	if err == nil {
		err = u.Collect()
	}
	if u.staging != nil {
		u.host.Free(u.staging)
	}
	for _, l := range u.lanes {
		l.close()
	}
	if err != nil {
		return fmt.Errorf("close the uploader: %w", err)
	}
	return nil
}
