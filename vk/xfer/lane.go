package xfer

import (
	"context"
	"fmt"
	"time"

	"leat/vk"
)

// lane is a queue, its timeline, and a ring of command buffers: each submission takes
// the next.
type lane struct {
	index    int
	queue    *vk.Queue
	timeline *vk.Timeline
	pool     *vk.CommandPool
	commands [maxCommands]command
	value    uint64 // last one submitted

	times     *times
	stamps    *vk.QueryPool // when copies begin and end, two for each command; nil: the queue has no timestamps
	hostReset bool          // of stamps
	last      accounted

	command [1]*vk.CommandBuffer // scratch
	signal  [1]vk.Point
	ticks   [2 * maxCommands]uint64
	done    Done
}

// accounted is the last submission of a lane that is accounted for.
type accounted struct {
	value  uint64
	end    time.Time // when the host noticed that it had ended
	mapped time.Time // the end that Done.Times gave last
}

// command is a command buffer and its last submission.
type command struct {
	buffer    *vk.CommandBuffer
	tag       uint64
	bytes     int64
	submitted time.Time
}

// slot is the place in the ring of the submission with that value, 1 being the first.
func slot(value uint64) int { return int((value - 1) % maxCommands) }

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
	if l.pool, err = q.NewCommandPool(); err != nil {
		return l, err
	}
	for i := range l.commands {
		if l.commands[i].buffer, err = l.pool.New(); err != nil {
			return l, err
		}
	}
	if !t.stamped {
		return l, nil
	}
	if l.stamps, err = dev.NewQueryPool(2 * maxCommands); err == nil && l.hostReset {
		err = l.stamps.Reset(0, l.stamps.Count)
	}
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
	value := l.value + 1
	if err := l.free(value); err != nil {
		return 0, err
	}
	c, query := &l.commands[slot(value)], 2*slot(value)
	if err := c.buffer.Begin(); err != nil {
		return 0, err
	}
	if l.stamps != nil && !l.hostReset {
		c.buffer.ResetQueries(l.stamps, query, 2)
	}
	c.buffer.CopyBarrier() // an earlier copy to the same place comes first
	if l.stamps != nil {
		c.buffer.WriteTimestamp(l.stamps, query)
	}
	c.tag, c.bytes = rest.copies[0].Tag, 0
	for c.bytes < most && !rest.done() {
		k, n := rest.next(most - c.bytes)
		c.buffer.Copy(k.Dst.Buffer, k.Dst.Off, k.Src, k.SrcOff, n)
		c.bytes += n
	}
	if l.stamps != nil {
		c.buffer.WriteTimestamp(l.stamps, query+1)
	}
	if err := c.buffer.End(); err != nil {
		return 0, err
	}
	c.submitted = time.Now()
	l.command[0], l.signal[0] = c.buffer, vk.Point{Timeline: l.timeline, Value: value}
	if err := l.queue.Submit(vk.Submission{Commands: l.command[:], Waits: waits, Signals: l.signal[:]}); err != nil {
		return 0, err
	}
	l.value = value
	return value, nil
}

// free sees to it that the command buffer of a submission to come is not running, and
// that what it did is accounted for. Where the host times it looks each time.
func (l *lane) free(value uint64) error {
	least := uint64(0)
	if value > maxCommands {
		least = value - maxCommands
	}
	if l.stamps != nil && l.last.value >= least {
		return nil
	}
	now, err := l.timeline.Value()
	if err == nil && now < least {
		err, now = l.timeline.Wait(context.Background(), least), least
	}
	if err != nil {
		return err
	}
	return l.collect(now)
}

// collect accounts for the submissions that had ended when the timeline stood at now.
func (l *lane) collect(now uint64) error {
	for l.last.value < now {
		at := slot(l.last.value + 1)
		n := min(int(now-l.last.value), maxCommands-at) // to the end of the ring, at most
		ticks := l.ticks[:2*n]
		if l.stamps != nil {
			if err := l.stamps.Read(2*at, ticks); err != nil {
				return err
			}
			if l.hostReset {
				if err := l.stamps.Reset(2*at, 2*n); err != nil {
					return err
				}
			}
		}
		for i := range n {
			l.times.ended(l, &l.commands[at+i], ticks[2*i], ticks[2*i+1])
		}
		l.last.value += uint64(n)
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
func (c *cursor) next(limit int64) (piece Copy, n int64) {
	piece = c.copies[0]
	n = min(limit, piece.Bytes-c.off)
	piece.Dst.Off, piece.SrcOff = piece.Dst.Off+c.off, piece.SrcOff+c.off
	c.off += n
	return piece, n
}
