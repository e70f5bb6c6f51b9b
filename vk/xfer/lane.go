package xfer

import (
	"context"
	"fmt"
	"time"

	"leat/vk"
)

// lane is a queue, its timeline, and a ring of command buffers.
type lane struct {
	index    int
	queue    *vk.Queue
	timeline *vk.Timeline
	pool     *vk.CommandPool
	commands []command
	next     int    // the command buffer used longest ago
	value    uint64 // last one submitted

	times     *times
	stamps    *vk.QueryPool // when copies begin and end; nil: the queue has no timestamps
	hostReset bool          // of stamps
	open      int           // submissions, the newest, that are not accounted for
	seen      time.Time     // the end of the last one that is
	mapped    time.Time     // the end that Done.Times gave last
	done      Done          // scratch of times.ended

	command [1]*vk.CommandBuffer // scratch of batch
	signal  [1]vk.Point
}

// command is a command buffer and its last submission.
type command struct {
	buffer *vk.CommandBuffer
	query  int // first of its two in the lane's stamps

	value     uint64
	tag       uint64
	bytes     int64
	submitted time.Time
	ticks     [2]uint64 // its begin and end, as read
}

func newLane(dev *vk.Device, q *vk.Queue, n int, t *times) (l *lane, err error) {
	l = &lane{index: n, queue: q, times: t, hostReset: dev.Features.HostQueryReset}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.timeline, err = dev.NewTimeline(fmt.Sprintf("transfer %d", n)); err != nil {
		return l, err
	}
	if l.pool, err = q.NewCommandPool(); err != nil || !t.stamped {
		return l, err
	}
	l.stamps, err = dev.NewQueryPool(2 * maxCommands)
	return l, err
}

// stamps reports whether copies on q can be timed by the device.
func stamps(dev *vk.Device, q *vk.Queue) bool {
	return q.TimestampBits > 0 && (dev.Features.HostQueryReset || q == dev.Compute)
}

func (l *lane) close() {
	if l.stamps != nil {
		l.stamps.Close()
	}
	if l.pool != nil {
		l.pool.Close()
	}
	if l.timeline != nil {
		l.timeline.Close()
	}
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
	if err := l.begin(c); err != nil {
		return 0, err
	}
	c.tag, c.bytes = rest.copies[0].Tag, 0
	for c.bytes < most && !rest.done() {
		k, n := rest.next(most - c.bytes)
		c.buffer.Copy(k.Dst.Buffer, k.Dst.Off, k.Src, k.SrcOff, n)
		c.bytes += n
	}
	if l.stamps != nil {
		c.buffer.WriteTimestamp(l.stamps, c.query+1)
	}
	if err := c.buffer.End(); err != nil {
		return 0, err
	}
	c.submitted = time.Now()
	l.command[0], l.signal[0] = c.buffer, vk.Point{Timeline: l.timeline, Value: l.value + 1}
	if err := l.queue.Submit(vk.Submission{Commands: l.command[:], Waits: waits, Signals: l.signal[:]}); err != nil {
		return 0, err
	}
	l.value++
	c.value = l.value
	l.next = (l.next + 1) % len(l.commands)
	l.open++
	return l.value, nil
}

// begin opens c, which is not running.
func (l *lane) begin(c *command) error {
	if l.stamps != nil && l.hostReset {
		if err := l.stamps.Reset(c.query, 2); err != nil {
			return err
		}
	}
	if err := c.buffer.Begin(); err != nil {
		return err
	}
	if l.stamps != nil && !l.hostReset {
		c.buffer.ResetQueries(l.stamps, c.query, 2)
	}
	c.buffer.CopyBarrier() // an earlier copy to the same place comes first
	if l.stamps != nil {
		c.buffer.WriteTimestamp(l.stamps, c.query)
	}
	return nil
}

// take gives the command buffer that was used longest ago, or a new one while it still
// runs: the one at next.
func (l *lane) take() (*command, error) {
	if len(l.commands) > 0 {
		c := &l.commands[l.next]
		now, err := l.timeline.Value()
		if err == nil && now < c.value && len(l.commands) == maxCommands {
			err, now = l.timeline.Wait(context.Background(), c.value), c.value
		}
		if err == nil {
			err = l.collect(now)
		}
		if err != nil || now >= c.value {
			return c, err
		}
	}
	b, err := l.pool.New()
	if err != nil {
		return nil, err
	}
	// Put before the oldest, the new one is the newest of the ring.
	l.commands = append(l.commands, command{})
	copy(l.commands[l.next+1:], l.commands[l.next:])
	l.commands[l.next] = command{buffer: b, query: 2 * (len(l.commands) - 1)}
	return &l.commands[l.next], nil
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
