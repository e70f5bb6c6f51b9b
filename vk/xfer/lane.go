package xfer

import (
	"context"
	"fmt"

	"leat/vk"
)

// lane is a queue, its timeline, and a ring of command buffers.
type lane struct {
	queue    *vk.Queue
	timeline *vk.Timeline
	pool     *vk.CommandPool
	commands []command
	next     int    // the command buffer used longest ago
	value    uint64 // last one submitted

	command [1]*vk.CommandBuffer // scratch of batch
	signal  [1]vk.Point
}

// command is a command buffer and the value of its last submission.
type command struct {
	buffer *vk.CommandBuffer
	value  uint64
}

func newLane(dev *vk.Device, q *vk.Queue, n int) (*lane, error) {
	l := &lane{queue: q}
	var err error
	if l.timeline, err = dev.NewTimeline(fmt.Sprintf("transfer %d", n)); err != nil {
		return nil, err
	}
	if l.pool, err = q.NewCommandPool(); err != nil {
		l.timeline.Close()
		return nil, err
	}
	return l, nil
}

func (l *lane) close() {
	l.pool.Close()
	l.timeline.Close()
}

// submit queues copies, most bytes at a time, and returns the value of the last; 0 for
// no copies.
func (l *lane) submit(copies []Copy, most int64, waits []vk.Point) (value uint64, err error) {
	rest := cursor{copies: copies}
	for !rest.done() {
		v, err := l.batch(&rest, most, waits)
		if err != nil {
			return value, err
		}
		value, waits = v, nil // the queue keeps order: later batches wait too
	}
	return value, nil
}

func (l *lane) batch(rest *cursor, most int64, waits []vk.Point) (uint64, error) {
	c, err := l.take()
	if err != nil {
		return 0, err
	}
	if err := c.buffer.Begin(); err != nil {
		return 0, err
	}
	c.buffer.CopyBarrier() // an earlier copy to the same place comes first
	for left := most; left > 0 && !rest.done(); {
		k, n := rest.next(left)
		c.buffer.Copy(k.Dst.Buffer, k.Dst.Off, k.Src, k.SrcOff, n)
		left -= n
	}
	if err := c.buffer.End(); err != nil {
		return 0, err
	}
	l.command[0], l.signal[0] = c.buffer, vk.Point{Timeline: l.timeline, Value: l.value + 1}
	if err := l.queue.Submit(vk.Submission{Commands: l.command[:], Waits: waits, Signals: l.signal[:]}); err != nil {
		return 0, err
	}
	l.value++
	c.value = l.value
	return l.value, nil
}

// take gives the command buffer that was used longest ago, or a new one while it still runs.
func (l *lane) take() (*command, error) {
	if len(l.commands) > 0 {
		c := &l.commands[l.next]
		now, err := l.timeline.Value()
		if err == nil && now < c.value && len(l.commands) == maxCommands {
			err, now = l.timeline.Wait(context.Background(), c.value), c.value
		}
		if err != nil {
			return nil, err
		}
		if now >= c.value {
			l.next = (l.next + 1) % len(l.commands)
			return c, nil
		}
	}
	b, err := l.pool.New()
	if err != nil {
		return nil, err
	}
	// Put before the oldest, the new one is the newest of the ring.
	l.commands = append(l.commands, command{})
	copy(l.commands[l.next+1:], l.commands[l.next:])
	l.commands[l.next] = command{buffer: b}
	c := &l.commands[l.next]
	l.next = (l.next + 1) % len(l.commands)
	return c, nil
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
func (c *cursor) next(limit int64) (piece Copy, n int64) {
	piece = c.copies[0]
	n = min(limit, piece.Bytes-c.off)
	piece.Dst.Off, piece.SrcOff = piece.Dst.Off+c.off, piece.SrcOff+c.off
	c.off += n
	return piece, n
}
